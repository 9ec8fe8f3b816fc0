"""Training: one loop, its schedule and its validation."""
