"""Files of translations to batches: read, filter, store, batch."""
