"""Bitext mining: translations found among sentences of two languages (Artetxe & Schwenk 2019)."""
