"""Parsed sentences: files, queries and candidates, and the similarity of neighbours' parses."""
