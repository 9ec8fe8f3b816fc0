"""Speed compared with other tools, with the numerical error: one page per kind of work."""
