"""Networks: bodies that encode a sentence, heads that turn it into a posterior, decoders that generate one."""
