"""A split: what sentences of one meaning share in an encoder's vectors, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bgt_core.data.languages import known_lang
from bgt_core.vectors.convert import matrix


@dataclass(frozen=True, eq=False)
class Hidden:
    """A hidden layer of H units beside a linear map: relu(x up^T + bias) down^T."""

    up: np.ndarray  # (H, D)
    bias: np.ndarray  # (H,)
    down: np.ndarray  # (K, H)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """(N, D) -> (N, K)."""
        return np.maximum(vectors @ self.up.T + self.bias, 0) @ self.down.T


@dataclass(frozen=True, eq=False)
class Map:
    """How one language's vectors are split.

        shared = (vector - offset) read^T + hidden(vector - offset) + centre        private = vector - shared back^T

    So the parts always give the vector again, whatever the method; methods differ in what they call shared.
    """

    offset: np.ndarray  # (D,)
    read: np.ndarray  # (K, D)
    back: np.ndarray  # (D, K)
    centre: np.ndarray  # (K,)
    hidden: Hidden | None = None

    def shared(self, vectors: np.ndarray) -> np.ndarray:
        """(N, D) -> (N, K)."""
        centred = vectors - self.offset
        linear = centred @ self.read.T + self.centre
        return linear if self.hidden is None else linear + self.hidden(centred)


@dataclass(frozen=True, eq=False)
class Split:
    """A fitted split of an encoder's vectors of D units.

    Args:
        method: The method that made it.
        maps: How to split each language.
        about: What the method chose and measured: numbers, strings and lists, for the card.
    """

    method: str
    maps: Mapping[str, Map]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def langs(self) -> Sequence[str]:
        """The languages it can split."""
        return tuple(self.maps)

    @property
    def width(self) -> int:
        """Units D of a vector, and of its private part."""
        return len(next(iter(self.maps.values())).offset)

    @property
    def shared_width(self) -> int:
        """Units K of a shared part."""
        return len(next(iter(self.maps.values())).centre)

    def shared(self, vectors: np.ndarray, lang: str) -> np.ndarray:
        """Return what sentences of one meaning share: (N, D) -> (N, K); errors as `parts`."""
        return self.of(lang).shared(self.checked(vectors))

    def private(self, vectors: np.ndarray, lang: str) -> np.ndarray:
        """Return the private part of each vector: (N, D) -> (N, D); errors as `parts`."""
        return self.parts(vectors, lang)[1]

    def parts(self, vectors: np.ndarray, lang: str) -> tuple[np.ndarray, np.ndarray]:
        """Split vectors of one language.

        Args:
            vectors: (N, D).
            lang: Their language.

        Returns:
            The shared parts (N, K) and the private parts (N, D), in the precision of the split.

        Raises:
            UsageError: A language that the split was not fitted on.
            DataError: Vectors of another width than the split was fitted on, and as `matrix`.
        """
        of, vectors = self.of(lang), self.checked(vectors)
        shared = of.shared(vectors)
        private = vectors - shared @ of.back.T
        # rounding error of a part that is 0 would have a direction, in which copies of a vector agree
        private[np.abs(private) <= 4 * np.finfo(private.dtype).eps * (np.abs(vectors) + np.abs(of.offset))] = 0
        return shared, private

    def join(self, shared: np.ndarray, private: np.ndarray, lang: str) -> np.ndarray:
        """Put parts together, from one sentence or two: (N, K), (N, D) -> vectors (N, D) of that language.

        Parts of one sentence give its vector again. The shared part of one and the private part of another give a
        vector with the meaning of the first and the rest of the second, whatever the first one's language.
        """
        back, shared = self.of(lang).back, matrix(shared, "shared", ("N", self.shared_width), dtype=None)
        return shared @ back.T + matrix(private, "private", (len(shared), self.width), dtype=None)

    def of(self, lang: str) -> Map:
        """The map of a language; UsageError for one that it does not know."""
        return self.maps[known_lang(lang, self.langs, "the split")]

    def checked(self, vectors: object) -> np.ndarray:
        """Convert vectors of any kind to an array (N, D) without changing their precision; DataError as `matrix`."""
        return matrix(vectors, "vectors", ("N", self.width), dtype=None)
