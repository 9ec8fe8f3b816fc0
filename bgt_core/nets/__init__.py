"""Networks: bodies map a sentence to a vector, heads map this vector to a posterior, and decoders generate text."""
