"""Bitext mining: translations among sentences of two languages (Artetxe & Schwenk 2019). FAISS is loaded when used."""

from bgt_core.mining.bitext import Mined, mine

__all__ = ["Mined", "mine"]
