"""Choose items, and assign them to train, dev and test for each probe seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from probes.data.folds import FOLDS, folds
from probes.data.items import common, in_one_split, with_copies
from probes.task import SPLITS, Items

Cut = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of train, dev and test


def select(items: Items, limit: int, seed: int, in_order: bool = False) -> tuple[Items, int]:
    """Draw at most `limit` items in whole groups, without labels that can't be learnt; also return the number left out.

    They come in the order drawn, or with `in_order`, in their own, repeats included. Copies of a sentence are one
    group; without `in_order` they stay in one split.
    """
    joined = with_copies(items)
    learnable = common(joined if in_order else in_one_split(joined))
    rows: dict[int, list[int]] = {}  # of each group
    for row, group in enumerate(learnable.groups):
        rows.setdefault(group, []).append(row)
    order = list(rows)
    Random(seed).shuffle(order)
    chosen: list[int] = []
    for group in order:
        if len(chosen) + len(rows[group]) > limit:
            break
        chosen += rows[group]
    return learnable.take(sorted(chosen) if in_order else chosen), len(items.labels) - len(chosen)


def cuts_of(items: Items, seeds: int, seed: int) -> list[Cut]:
    """Train, dev and test rows of each probe seed.

    Without fixed splits, folds: eight tenths to train, one for dev, and one for test, so that no item is tested twice.
    Fixed splits are the same for every seed; but each of several seeds leaves another tenth of the groups out of train,
    because a probe at its optimum would otherwise be the same each time.
    """
    if items.splits is None:
        cuts = folds(items.groups, seeds, seed)
        return [(np.array(train), np.array(dev), np.array(test)) for train, dev, test in cuts]
    names, groups = np.array(items.splits), np.array(items.groups)
    train, dev, test = (np.flatnonzero(names == name) for name in SPLITS)
    if seeds == 1:
        return [(train, dev, test)]
    order = np.random.default_rng(seed).permutation(np.unique(groups[train]))
    return [(train[~np.isin(groups[train], order[k::FOLDS])], dev, test) for k in range(seeds)]


def subsample(train: np.ndarray, groups: Sequence[int], limit: int, seed: int) -> np.ndarray:
    """At most `limit` of the training rows, in whole random groups, in their order."""
    if len(train) <= limit:
        return train
    names, group, sizes = np.unique(np.array(groups)[train], return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = order[sizes[order].cumsum() <= limit]
    return train[np.isin(group, chosen)]
