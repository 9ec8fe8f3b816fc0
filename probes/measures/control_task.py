"""Controls of a probe: labels that say nothing of language, and what it can merely memorise.

A control task (Hewitt & Liang, 2019) keeps a probe's inputs and gives labels that only memory can explain. Theirs
labels each word type at random. A random label for each sentence would be chance in test whatever the probe, as no
sentence comes twice; so the label here belongs to a key that recurs: the first token, or the rarest of the frequent
ones. Whoever holds the key and a large memory does well; accuracy above that is selectivity. First tokens are few and
uneven: a fifth of French sentences may share one label by the luck of "le", which makes selectivity uncertain (an
interval of 17 points over five draws where the rare key's has 4: subject number, 2,000 test items).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from probes.words import split_tokens

FREQUENT = 2_000  # kinds of tokens that may be keys, where the rarest is taken
CONTROLS = ("first", "rare")


def keys(sentences: Sequence[str], kind: str) -> list[str]:
    """The key of each sentence: its "first" token, or its "rare" one, the rarest among the 2,000 most frequent."""
    tokens = [split_tokens(sentence.lower()) for sentence in sentences]
    if kind == "first":
        return [words[0] if words else "" for words in tokens]
    counts = Counter(token for words in tokens for token in set(words))
    common = dict(counts.most_common(FREQUENT))
    return [
        min((token for token in words if token in common), key=lambda token: (common[token], token), default="")
        for words in tokens
    ]


def control_labels(
    names: Sequence[str], labels: np.ndarray, train: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A label for each of N keys, and whether the key is in train: two arrays (N,).

    The label is drawn once per key, with the shares that (N,) `labels` have. An item whose key was never trained on
    can't be remembered, and is not tested.
    """
    kinds, kind = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))  # one of all labels: the shares are theirs
    return drawn[kind], np.isin(kind, kind[train])


def shuffled(labels: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """A copy of (N,) labels with those of `rows` in another order."""
    mixed = labels.copy()
    mixed[rows] = np.random.default_rng(seed).permutation(labels[rows])
    return mixed
