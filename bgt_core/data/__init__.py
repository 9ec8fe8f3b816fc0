"""From files of translations to batches: download, read, clean, store and batch them."""
