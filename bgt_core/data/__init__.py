"""Files of translations to batches: read, filter, store, batch. `fetch` downloads files; `fetch.sources` lists them."""
