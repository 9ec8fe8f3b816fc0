"""Compare generated sentences with their references: plans of generation, and measures."""
