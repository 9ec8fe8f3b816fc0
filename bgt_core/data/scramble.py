"""Sentences whose tokens stand in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FREQUENT = 200  # ids below it are the most frequent tokens (SentencePiece sorts them): articles, endings, marks


def shuffle_words(sentences: Sequence[np.ndarray], share: float, *draw: int) -> Sequence[np.ndarray]:
    """About `share` of the sentences with their pieces permuted, EOS still last; which and how follows from `draw`.

    A recurrent encoder learns with them to rely less on order (Wieting and Gimpel 2017). Drawn anew for every update.
    The released code of 2019 drew once, so that a sentence shuffled in the first epoch stayed so in all.
    """
    if not share:
        return sentences
    rng = np.random.default_rng(draw)
    chosen = rng.random(len(sentences)) < share
    return [
        np.append(rng.permutation(ids[:-1]), ids[-1]) if shuffle else ids
        for ids, shuffle in zip(sentences, chosen, strict=True)
    ]


def exchange_tokens(sentences: Sequence[np.ndarray], *draw: int) -> list[np.ndarray]:
    """Each sentence with two of its rarer tokens exchanged: the same words, who did it to whom turned around.

    A sentence with fewer than two different ones is replaced by the altered sentence before it, or itself where there
    is none. What is exchanged follows from `draw`.
    """
    rng, altered = np.random.default_rng(draw), list[np.ndarray]()
    for ids in sentences:
        rare = np.flatnonzero(ids >= FREQUENT)
        if len(np.unique(ids[rare])) < 2:
            altered.append(altered[-1] if altered else ids)
            continue
        first, second = rng.choice(rare, 2, replace=False)
        while ids[first] == ids[second]:
            first, second = rng.choice(rare, 2, replace=False)
        exchanged = ids.copy()
        exchanged[[first, second]] = ids[[second, first]]
        altered.append(exchanged)
    return altered
