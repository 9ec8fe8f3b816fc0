"""Style transfer: does a generated sentence keep its source's meaning, and take over its style?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder


def transfer_scores(
    encoder: SentenceEncoder, outputs: Sequence[str], sources: Sequence[str], styles: Sequence[str], *, lang: str
) -> tuple[float, float, float]:
    """Score N outputs of N sources and N styles, all of one language.

    The model judges its own similarities: confirm them with another encoder.

    Returns:
        The mean semantic similarity of output and source, that of output and style, which is leakage of meaning, and
        Pearson's correlation of output and style lengths, in words.
    """
    output, source, style = (encoder.embed(texts, lang=lang, latent=SEMANTIC) for texts in (outputs, sources, styles))
    lengths = np.array([[len(text.split()) for text in texts] for texts in (outputs, styles)])
    correlation = float(np.corrcoef(lengths)[0, 1]) if lengths.std(axis=1).all() else 0.0
    to_source, to_style = (float(encoder.similarity_pairwise(output, other).mean()) for other in (source, style))
    return to_source, to_style, correlation
