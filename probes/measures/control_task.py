"""Controls of a probe: tasks without linguistic content, which it can only memorise.

A control task (Hewitt & Liang, 2019) keeps a probe's inputs and has labels that can only be memorised. Theirs
labels each word type at random. Random labels of sentences would give chance accuracy in test for any probe, as no
sentence occurs twice; so the label here belongs to a recurring key: the first token, or the rarest of the frequent
ones. A probe that can read the key and memorise does well; accuracy above that is selectivity. First tokens are few and
uneven: a fifth of French sentences may share the label of "le", which makes selectivity uncertain (an
interval of 17 points over five draws, and of 4 with the rare key: subject number, 2,000 test items).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from probes.words import split_tokens

FREQUENT = 2_000  # most frequent kinds of tokens, among which the rarest is the key
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

    The label is drawn once per key, with the shares of (N,) `labels`. An item whose key is not in train can't be
    memorised, and is not tested.
    """
    kinds, kind = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))  # drawn from all labels, which gives the same shares
    return drawn[kind], np.isin(kind, kind[train])


def shuffled(labels: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """Copy (N,) labels, with those of `rows` shuffled."""
    mixed = labels.copy()
    mixed[rows] = np.random.default_rng(seed).permutation(labels[rows])
    return mixed
