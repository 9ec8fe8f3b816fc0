"""What is measured of a probe: accuracy with intervals, controls, codelength, erasure."""
