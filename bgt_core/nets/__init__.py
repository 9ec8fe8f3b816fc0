"""Neural networks: bodies map sentences to vectors, heads map vectors to posteriors, and decoders generate text."""
