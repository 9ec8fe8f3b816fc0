"""Score sentences by a trained `reference-classifier`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from bgt_core import load
from bgt_core.capabilities import ReferenceModel
from bgt_core.embedder import Embedder
from bgt_core.errors import NotFound, UsageError


class ReferenceProbability:
    """The probability that a person wrote a sentence, not a machine translator, by a trained classifier.

    Like every score, it can select pairs (`data.clean.clean(models={"classifier": ...})`).
    """

    def __init__(self, embedder: Embedder):
        """Raises UsageError for another model."""
        if not isinstance(embedder.model, ReferenceModel):
            raise UsageError("this model is not a reference classifier; train a reference-classifier.")
        self._embedder, self._model = embedder, embedder.model

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", precision: str = "fp32") -> ReferenceProbability:
        """Load a checkpoint or run; NotFound if absent, DataError if damaged, UsageError for another kind of model."""
        if not Path(path).exists():
            raise NotFound(
                f"{path}: no such run; train one with `bgt train reference-classifier`.", parameter="classifier"
            )
        try:
            return cls(load(path, device, precision))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the scores, in one line."""
        return self._embedder.fingerprint

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """N sentences -> (N,) float64, from 0 to 1."""
        vectors = self._embedder.embed(sentences, lang=self._embedder.langs[0])  # all its languages have one encoder
        return self._model.reference_probability(torch.from_numpy(vectors).to(self._embedder.device)).cpu().numpy()
