"""Fast forms of what nets compute most. `nets.forms` has the plain form of each, and chooses between them."""
