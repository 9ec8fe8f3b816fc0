"""Run any encoder in SentEval, by the two functions that it needs:

    prepare, batcher = senteval_functions(bgt_core.load())
    senteval.engine.SE(params, batcher, prepare).eval(["STS14", "Length"])

SentEval's text is already split into words; they are joined by spaces, and not detokenised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder

Sentence = Sequence[str | bytes]  # tokens; bytes in its COCO task
EMPTY = "."  # stands for an empty sentence, as in SentEval's own examples


def senteval_functions(
    encoder: SentenceEncoder, *, lang: str = "en", latent: str = SEMANTIC
) -> tuple[Callable[[Any, Sequence[Sentence]], None], Callable[[Any, Sequence[Sentence]], np.ndarray]]:
    """Return (prepare, batcher): the first does nothing, the second turns B sentences into (B, D) float32."""

    def prepare(params: Any, samples: Sequence[Sentence]) -> None:
        """Called once per task with all its sentences; does nothing, because nothing is fitted."""

    def batcher(params: Any, batch: Sequence[Sentence]) -> np.ndarray:
        """Called with up to `params.batch_size` sentences at a time."""
        return encoder.embed([_text(tokens) for tokens in batch], lang=lang, latent=latent)

    return prepare, batcher


def _text(tokens: Sentence) -> str:
    words = (token.decode() if isinstance(token, bytes) else token for token in tokens)
    return " ".join(words) or EMPTY
