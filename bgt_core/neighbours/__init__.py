"""Find nearest neighbours with FAISS, find translations in texts, and search stored questions."""
