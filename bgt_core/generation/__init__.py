"""Generate sentences from latents or from other sentences, by search, style transfer or translation."""
