"""Capitals of words that take the place of others."""

from __future__ import annotations


def capitalised_like(word: str, model: str) -> str:
    """`word` with a first capital if `model` has one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
