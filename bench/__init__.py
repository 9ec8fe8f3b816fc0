"""Speed, the tool compared with, and the error: one page per kind of work."""
