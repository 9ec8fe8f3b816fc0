"""Files of translations to batches: read, filter, store, batch. `fetch` downloads them; its `sources` lists the data."""
