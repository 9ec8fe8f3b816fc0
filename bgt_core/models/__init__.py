"""The model BGT and the base classes of all models. Models that only one recipe uses are in `recipes`."""
