"""Vectors: compared, and kept in files."""
