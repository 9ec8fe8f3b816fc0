"""Sentences from latents: search, style transfer, and directions in the latent spaces."""
