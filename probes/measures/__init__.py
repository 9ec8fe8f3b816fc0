"""Measures of a probe: accuracy with confidence intervals, V-information and selectivity."""
