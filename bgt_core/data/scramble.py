"""Shuffled words, with which a recurrent encoder learns to rely less on their order (Wieting and Gimpel 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def shuffle_words(sentences: Sequence[np.ndarray], share: float, *draw: int) -> Sequence[np.ndarray]:
    """About `share` of the sentences with their pieces permuted, EOS still last; which and how follows from `draw`.

    Drawn anew for every update. The released code of 2019 drew once, so that a sentence shuffled in the first epoch
    stayed so in all.
    """
    if not share:
        return sentences
    rng = np.random.default_rng(draw)
    chosen = rng.random(len(sentences)) < share
    return [
        np.append(rng.permutation(ids[:-1]), ids[-1]) if shuffle else ids
        for ids, shuffle in zip(sentences, chosen, strict=True)
    ]
