"""What is probed: sentences and their labels, from any source."""
