"""Semantic textual similarity: files -> sets of pairs -> scores."""
