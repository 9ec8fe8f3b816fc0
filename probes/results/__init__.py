"""What is kept of a measurement, and shown."""
