"""Find copies of text: keys that ignore case and punctuation, hashes of the keys, and a compact set of hashes."""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np


def key(sentence: str) -> str:
    """Reduce a normalised sentence to a key: lower case, without punctuation, symbols, spaces or compatibility forms.

    Two sentences with the same key count as copies. If nothing would remain, the key is the sentence in lower case.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold() if not sentence.isascii() else sentence.lower()
    return folded.translate(_not_in_keys()) or folded


def hashes(texts: Sequence[str], seed: int) -> np.ndarray:
    """Hash N texts to 64 bits each, (N,) uint64; different seeds give different hashes."""
    salt = seed.to_bytes(16, "little")
    return np.frombuffer(
        b"".join([blake2b(text.encode(), digest_size=8, salt=salt).digest() for text in texts]), np.dtype("<u8")
    )


class Seen:
    """A growing set of hashes. It takes 8 bytes per hash, and up to 24 during a merge.

    The hashes are in sorted runs, each at least twice as long as the next, so adding N hashes takes N log N steps. The
    probability that two of a hundred million different texts share a hash, so that one is lost, is 1 in 3,700.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def holds(self, some: np.ndarray) -> np.ndarray:
        """Test which hashes are in the set, (N,) bool."""
        held = np.zeros(len(some), bool)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, some), len(run) - 1)
            held |= run[nearest] == some
        return held

    def add(self, some: np.ndarray) -> None:
        """Add hashes, which must be distinct and not in the set yet."""
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
        """Return the largest of the `count` smallest hashes."""
        return int(np.partition(np.concatenate(self._runs), count - 1)[count - 1])


@functools.cache
def _not_in_keys() -> dict[int, None]:
    """Map punctuation, symbols and spaces to None, so that `str.translate` drops them."""
    return {code: None for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZ"}
