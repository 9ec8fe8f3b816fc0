"""Compare our speed with that of other tools, and measure numerical errors, on one page of results per kind of work."""
