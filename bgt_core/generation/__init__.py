"""Sentences from latents or from other sentences: search, style transfer, translation, directions in latent spaces."""
