"""The model BGT and the base classes of all models. A model that only one recipe uses is in the recipe's module."""
