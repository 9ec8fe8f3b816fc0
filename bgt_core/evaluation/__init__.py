"""Evaluations: they know an embedder and never a model class."""
