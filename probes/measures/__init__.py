"""Measures of a probe: accuracy with intervals, V-information, selectivity."""
