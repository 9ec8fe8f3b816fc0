"""Compare our speed with other tools, and measure numerical errors. Each kind of work has a page of results."""
