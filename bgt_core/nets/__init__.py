"""Networks: bodies that map a sentence to a vector, heads that map it to a posterior, and decoders that generate."""
