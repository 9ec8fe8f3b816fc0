"""Style transfer: does a generated sentence keep its source's meaning, and take its style's manner?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.vectors.compare import cosines


@dataclass(frozen=True)
class StyleScores:
    """Means over N outputs. The cosines are the model's own opinion: use another encoder to confirm them."""

    to_source: float  # semantic cosine of output and source
    to_style: float  # semantic cosine of output and style: what leaks
    length: float  # Pearson correlation of output and style lengths, in words


def style_scores(
    bgt: SentenceEncoder, outputs: Sequence[str], sources: Sequence[str], styles: Sequence[str], *, lang: str
) -> StyleScores:
    """Scores of N outputs made from N sources and N styles, all of one language."""
    written, meant, manner = (bgt.embed(texts, lang=lang, latent=SEMANTIC) for texts in (outputs, sources, styles))
    lengths = np.array([[len(text.split()) for text in texts] for texts in (outputs, styles)], dtype=float)
    related = float(np.corrcoef(lengths)[0, 1]) if lengths.std(axis=1).all() else 0.0
    return StyleScores(float(cosines(written, meant).mean()), float(cosines(written, manner).mean()), related)
