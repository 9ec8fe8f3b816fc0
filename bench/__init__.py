"""Compare our speed with other tools, and measure numerical errors: one page for each kind of work."""
