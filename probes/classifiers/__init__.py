"""The classifiers that serve as probes of fixed vectors, and baselines that do not use the encoder."""
