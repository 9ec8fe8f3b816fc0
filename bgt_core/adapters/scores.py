"""Look up the similarities of pairs that `bgt evaluate sts --out` wrote, without the model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyarrow import parquet

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, UsageError
from bgt_core.files.parquet import reading_parquet
from bgt_core.vectors.compare import paired

COLUMNS = ("system", "left_lang", "left", "right_lang", "right", "cosine")


class KeptSimilarities:
    """An encoder that knows pairs, not sentences: its latents are the systems of the file.

    A vector has two numbers, for the sentence and the system; similarities are those stored for the pair.
    """

    langs: Sequence[str] = ()  # any

    def __init__(self, path: Path):
        """Raises NotFound if the file can't be read, DataError if it is not a file of similarities."""
        self.path = path
        with reading_parquet(path, "a file that bgt evaluate sts --out writes"), parquet.ParquetFile(path) as file:
            columns = file.read(list(COLUMNS)).select(COLUMNS).to_pydict()
        self.latents = tuple(dict.fromkeys(columns["system"]))
        self._sentences: dict[tuple[str, str], int] = {}
        self._kept: dict[tuple[int, int, int], float] = {}
        systems = {name: number for number, name in enumerate(self.latents)}
        for system, left_lang, left, right_lang, right, cosine in zip(*columns.values(), strict=True):
            pair = [
                self._sentences.setdefault(side, len(self._sentences))
                for side in ((left_lang, left), (right_lang, right))
            ]
            self._kept.setdefault((pair[0], pair[1], systems[system]), cosine)
        if not self.latents:
            raise DataError(f"{path}: it holds no similarities.")

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the similarities."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, 2); UsageError for an unknown latent, DataError for a sentence that is in no pair."""
        if latent not in self.latents:
            raise UsageError(f"{latent}: {self.path} has {', '.join(self.latents)}.", parameter="latent")
        if unknown := [sentence for sentence in sentences if (lang, sentence) not in self._sentences]:
            raise DataError(f"{self.path}: it has no similarity for {unknown[0][:60]!r}; measure the model again.")
        system = self.latents.index(latent)
        rows = [[self._sentences[lang, sentence], system] for sentence in sentences]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Raise UsageError: only pairs were kept."""
        raise UsageError(f"{self.path}: has similarities of some pairs only, and can't be searched.")

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Look up the similarity of row i of left (N, 2) and row i of right (N, 2): (N,)."""
        left, right = paired(left, right)
        pairs = [(int(one[0]), int(other[0]), int(one[1])) for one, other in zip(left, right, strict=True)]
        if unknown := [row for row, pair in enumerate(pairs) if pair not in self._kept]:
            raise DataError(f"{self.path}: it has no similarity for pair {unknown[0] + 1}; measure the model again.")
        return np.array([self._kept[pair] for pair in pairs])
