"""Measures of a probe: accuracy with intervals, controls, codelength, erasure."""
