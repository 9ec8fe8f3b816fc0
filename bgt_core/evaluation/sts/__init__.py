"""Semantic textual similarity: files, scores, comparisons between systems."""
