"""Data for probing: labelled sentences from files or from the built-in sentences."""
