"""Networks: bodies that encode a sentence, heads that turn it into a posterior, decoders that generate one.

`forms` has the operations with a plain and a fast form (`fast`), and chooses between them.
"""
