"""What probes: classifiers over fixed vectors, and the baselines beside them."""
