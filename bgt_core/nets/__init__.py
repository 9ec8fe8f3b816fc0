"""Networks: bodies that read a sentence, heads that make a posterior of it, decoders that write one.

`forms` has the steps that come in a plain and in a fast form (`fast`), and chooses between them.
"""
