"""BGT and the base classes of all models, `Batch -> Outputs`. A model that only one recipe uses is in `recipes`."""
