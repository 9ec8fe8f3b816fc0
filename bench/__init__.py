"""Compare our speed with the speed of other tools, and measure numerical errors. Each kind of work has a page."""
