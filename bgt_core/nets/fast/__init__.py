"""Fast forms of the most frequent operations. `nets.forms` has the plain form of each, and chooses between them."""
