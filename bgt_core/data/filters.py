"""Copies of text: keys that ignore case and punctuation, their hashes, and a set of hashes in 8 bytes each."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np


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
