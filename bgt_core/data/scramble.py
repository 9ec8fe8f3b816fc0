"""Shuffle words, so that a recurrent encoder relies less on their order (Wieting and Gimpel 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def shuffle_words(sentences: Sequence[np.ndarray], share: float, *draw: int) -> Sequence[np.ndarray]:
    """Permute the tokens of about `share` of the sentences, with EOS still last; `draw` determines which and how.

    The permutation is new for every update. The released code of 2019 drew it once, so that a sentence shuffled in the
    first epoch stayed shuffled in all.
    """
    if not share:
        return sentences
    rng = np.random.default_rng(draw)
    chosen = rng.random(len(sentences)) < share
    return [
        np.append(rng.permutation(ids[:-1]), ids[-1]) if shuffle else ids
        for ids, shuffle in zip(sentences, chosen, strict=True)
    ]
