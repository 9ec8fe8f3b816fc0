"""Generation of sentences from latents or from other sentences: search, style transfer, translation."""
