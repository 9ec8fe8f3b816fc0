"""Convert and compare vectors, probe them, and map them linearly."""
