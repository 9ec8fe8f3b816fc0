"""Labelled pairs: files, measures of scores, and baselines of words alone."""
