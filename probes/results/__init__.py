"""Store results, and show them."""
