"""Filters that choose the pairs worth training on.

A filter has a name and chooses which of N candidate pairs stay. Filters that compare with other text (copies, overlap
with evaluation sets) compare keys, as hashes in `Seen`. Scores of translations are in `scores`.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np


class Candidates:
    """N pairs of L sides, and the data that filters need, computed when first used and kept for the pairs that stay."""

    def __init__(
        self,
        pairs: Sequence[tuple[str, ...]],
        lengths: np.ndarray,
        seed: int = 0,
        cells: Sequence[str] = (),
        numbers: np.ndarray | None = None,
    ):
        """Normalised pairs and the lengths of their sides, (N, L); for a column of numbers its N cells, and their
        values."""
        self.pairs, self.lengths, self.seed = pairs, lengths, seed
        self.cells, self.numbers = cells, numbers

    @functools.cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """The `key` of each side of each pair."""
        return [tuple(map(key, pair)) for pair in self.pairs]

    @functools.cached_property
    def hashes(self) -> np.ndarray:
        """(N,) uint64: a hash of all keys of a pair."""
        return hashes(["\t".join(sides) for sides in self.keys], self.seed)

    @property
    def first_hashes(self) -> np.ndarray:
        """(N,) uint64: a hash of the key of each pair's first side."""
        return hashes([sides[0] for sides in self.keys], self.seed)

    def rows(self, label: int) -> Sequence[tuple[str, ...]]:
        """The pairs with the column of numbers put back at its index; -1 if there is none."""
        if label < 0:
            return self.pairs
        return [(*pair[:label], cell, *pair[label:]) for pair, cell in zip(self.pairs, self.cells, strict=True)]

    def where(self, stays: np.ndarray) -> Candidates:
        """The chosen pairs, (N,) bool."""
        indices = np.flatnonzero(stays).tolist()
        cells = [self.cells[i] for i in indices] if self.cells else ()
        numbers = None if self.numbers is None else self.numbers[stays]
        part = Candidates([self.pairs[i] for i in indices], self.lengths[stays], self.seed, cells, numbers)
        if "keys" in vars(self):
            part.keys = [self.keys[i] for i in indices]
        if "hashes" in vars(self):
            part.hashes = self.hashes[stays]
        return part


class Filter(NamedTuple):
    """Drops pairs, and counts them under its name."""

    name: str
    keep: Callable[[Candidates], np.ndarray]  # -> (N,) bool


def apply(filters: Iterable[Filter], candidates: Candidates, dropped: Counter[str]) -> Candidates:
    """The pairs that every filter keeps; a dropped pair is counted once, for the first filter that drops it."""
    for name, keep in filters:
        stays = keep(candidates)
        dropped[name] += len(stays) - int(stays.sum())
        if not stays.all():
            candidates = candidates.where(stays)
    return candidates


def key(sentence: str) -> str:
    """Reduce a normalised sentence to a key, without case, punctuation, symbols, spaces and compatibility forms.

    Letters, marks and digits remain; two sentences with the same key count as copies. A sentence without any of these
    is its own key.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold() if not sentence.isascii() else sentence.lower()
    return folded.translate(_not_in_keys()) or folded


def hashes(texts: Sequence[str], seed: int) -> np.ndarray:
    """Hash each into 64 bits, (N,) uint64; another seed gives other hashes."""
    salt = seed.to_bytes(16, "little")
    return np.frombuffer(
        b"".join([blake2b(text.encode(), digest_size=8, salt=salt).digest() for text in texts]), np.dtype("<u8")
    )


class Seen:
    """A growing set of hashes, 8 bytes each, and twice as much during a merge.

    They are kept in sorted runs, each at least twice as long as the next: N hashes cost N log N, as sorting does. Among
    a hundred million texts two share a hash in one case of 3,700; one of them is then dropped as a copy.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def holds(self, some: np.ndarray) -> np.ndarray:
        """Which hashes are in the set, (N,) bool."""
        held = np.zeros(len(some), bool)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, some), len(run) - 1)
            held |= run[nearest] == some
        return held

    def add(self, some: np.ndarray) -> None:
        """Add the hashes that it does not hold yet, each once."""
        self._runs.append(np.sort(some))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")  # merges sorted runs

    def new(self, some: np.ndarray) -> np.ndarray:
        """Find the hashes that are neither in the set nor earlier in `some`, (N,) bool, and add them."""
        first = np.zeros(len(some), bool)
        first[np.unique(some, return_index=True)[1]] = True
        fresh = first & ~self.holds(some)
        if fresh.any():
            self.add(some[fresh])
        return fresh

    def smallest(self, count: int) -> int:
        """The largest of the `count` smallest hashes."""
        return int(np.partition(np.concatenate(self._runs), count - 1)[count - 1])


@functools.cache
def _not_in_keys() -> dict[int, None]:
    """Punctuation, symbols and spaces, for `str.translate` to drop."""
    return {code: None for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZ"}
