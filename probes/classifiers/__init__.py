"""Probes: classifiers over fixed vectors, and baselines."""
