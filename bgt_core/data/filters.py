"""Which pairs are worth training on.

A filter is a function of what is known of one pair, side by side (its lengths, its keys), and is True where the pair
stays. What needs memory of other text (copies, overlap with evaluation sets) compares keys, as hashes in `Seen`.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

UNSPACED = {"ja", "km", "lo", "my", "th", "zh"}  # written without spaces between words


def length(lengths: Sequence[int], least: int, most: int) -> bool:
    """Every side has `least` to `most`."""
    return least <= min(lengths) and max(lengths) <= most


def ratio(lengths: Sequence[int], most: float) -> bool:
    """The longest side is at most `most` times as long as the shortest."""
    return max(lengths) <= most * min(lengths)


def translated(keys: Sequence[str]) -> bool:
    """No two sides are copies: what is copied teaches no translation."""
    return len(set(keys)) == len(keys)


def key(sentence: str) -> str:
    """A normalised sentence without case, punctuation, symbols, spaces and compatibility forms.

    What is left are letters, marks and digits; two sentences of one key are copies for us. A sentence of nothing else
    is its own key.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold() if not sentence.isascii() else sentence.lower()
    return folded.translate(_others()) or folded


def hashes(texts: Sequence[str], seed: int) -> np.ndarray:
    """64 bits of each, (N,) uint64; another seed gives others."""
    salt = seed.to_bytes(16, "little")
    return np.frombuffer(
        b"".join([blake2b(text.encode(), digest_size=8, salt=salt).digest() for text in texts]), np.dtype("<u8")
    )


class Seen:
    """A growing set of hashes, 8 bytes each, and twice as much again for the moments when it tidies up.

    They are kept in sorted runs, each at least twice as long as the next: N hashes cost N log N, as sorting does.
    Two of a hundred million texts share a hash in one case of 3,700: then one is taken for a copy.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def holds(self, some: np.ndarray) -> np.ndarray:
        """Which of them are in the set, (N,) bool."""
        found = np.zeros(len(some), bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, some), len(run) - 1)
            found |= run[places] == some
        return found

    def add(self, some: np.ndarray) -> None:
        """Adds hashes that it does not hold yet, each once."""
        self._runs.append(np.sort(some))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")  # merges sorted runs

    def new(self, some: np.ndarray) -> np.ndarray:
        """Which are neither in the set nor earlier in `some`, (N,) bool; these are added."""
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
def _others() -> dict[int, None]:
    """Punctuation, symbols and spaces, for `str.translate` to drop."""
    return {code: None for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZ"}
