"""Data for probing: sentences and their labels, from any source."""
