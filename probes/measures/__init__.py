"""Measures of a probe: accuracy with intervals, V-information and selectivity."""
