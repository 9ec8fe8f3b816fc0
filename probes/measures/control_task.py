"""Controls of a probe: labels that say nothing of language, and what it can merely memorise.

A control task (Hewitt & Liang, 2019) keeps a probe's inputs and gives labels that only memory can explain. Theirs
labels each word type at random. A random label for each sentence would be chance in test whatever the probe, as no
sentence comes twice; so the label here belongs to a key that recurs: the first token, or the rarest of the frequent
ones. Whoever holds the key and a large memory does well; accuracy above that is selectivity. First tokens are few and
uneven: a fifth of French sentences may share one label by the luck of "le", and selectivity over five draws comes with
an interval of 17 points where the rare key's has 4 (subject number, 2,000 test items).
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
        return [found[0] if found else "" for found in tokens]
    counts = Counter(token for found in tokens for token in set(found))
    common = dict(counts.most_common(FREQUENT))
    return [min((token for token in found if token in common), key=lambda token: (common[token], token), default="")
            for found in tokens]  # fmt: skip


def control_labels(
    names: Sequence[str], labels: np.ndarray, train: Sequence[int], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A label for each of N keys, drawn once a key with the shares that (N,) `labels` have; and whether `train` has it.

    The second is a boolean (N,): an item whose key was never trained on can't be remembered, and is not tested.
    """
    kinds, place = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, len(kinds))  # one of all labels: the shares are theirs
    return drawn[place], np.isin(place, place[np.asarray(train)])


def shuffled(labels: np.ndarray, rows: Sequence[int], seed: int) -> np.ndarray:
    """A copy of (N,) labels with those of `rows` in another order."""
    mixed = labels.copy()
    mixed[rows] = np.random.default_rng(seed).permutation(labels[rows])
    return mixed
