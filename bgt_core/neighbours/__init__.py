"""Nearest neighbours: exact and approximate search by FAISS, margins, mined translations, and stored questions."""
