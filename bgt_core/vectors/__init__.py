"""Compare vectors, and store them in files."""
