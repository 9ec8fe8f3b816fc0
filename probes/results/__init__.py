"""The results of a run, and the file that stores them."""
