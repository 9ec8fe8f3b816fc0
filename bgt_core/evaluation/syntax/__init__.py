"""Parsed sentences: files, queries and candidates, and how alike the parses of neighbours are."""
