"""Style transfer: does a generated sentence keep its source's meaning, and take over its style?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder


@dataclass(frozen=True)
class StyleScores:
    """Means over N outputs. The model judges its own similarities: confirm them with another encoder."""

    to_source: float  # semantic similarity of output and source
    to_style: float  # semantic similarity of output and style: leakage of meaning
    length: float  # Pearson correlation of output and style lengths, in words


def style_scores(
    encoder: SentenceEncoder, outputs: Sequence[str], sources: Sequence[str], styles: Sequence[str], *, lang: str
) -> StyleScores:
    """Score N outputs of N sources and N styles, all of one language."""
    output, source, style = (encoder.embed(texts, lang=lang, latent=SEMANTIC) for texts in (outputs, sources, styles))
    lengths = np.array([[len(text.split()) for text in texts] for texts in (outputs, styles)])
    correlation = float(np.corrcoef(lengths)[0, 1]) if lengths.std(axis=1).all() else 0.0
    to_source, to_style = (float(encoder.similarity_pairwise(output, other).mean()) for other in (source, style))
    return StyleScores(to_source, to_style, correlation)
