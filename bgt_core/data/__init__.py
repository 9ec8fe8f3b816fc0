"""Download, read and clean files of translations, write them to token stores, and make batches from the stores."""
