"""Networks: bodies that read a sentence, heads that make a posterior of it, decoders that write one."""
