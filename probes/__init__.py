"""What a latent knows: small classifiers trained on a model's vectors, beside baselines, with intervals."""
