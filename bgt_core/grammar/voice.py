"""A voice: the style of one sentence in one language."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Voice:
    """Draw a factor when a rule first needs it, then keep it: `chosen`."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.chosen: dict[str, str] = {}

    def pick(self, factor: str, *options: str) -> str:
        if factor not in self.chosen:
            self.chosen[factor] = self.rng.choice(options)
        return self.chosen[factor]

    def word(self, variants: Sequence[T]) -> T:
        """Make the same choice for every word of the sentence that has a synonym."""
        return variants[0] if len(variants) == 1 or self.pick("words", "first", "second") == "first" else variants[1]
