"""How fast, against what, and how far from exact: one page a piece of work."""
