"""The results of a run of `bgt-probe`, and the file that stores them."""
