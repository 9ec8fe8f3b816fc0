"""Download, read, clean and tokenise files of translations, and make batches for training from the tokens."""
