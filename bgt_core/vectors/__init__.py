"""Convert and compare vectors, fit linear probes to them, and fit linear maps."""
