"""Cross-validation by groups: assign items to train, dev and test, for sources without splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

FOLDS = 10  # one is tested, one chooses the strength, the others train


def folds(groups: Sequence[int], seeds: int, seed: int = 0) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """(train, dev, test) rows for each of at most 10 probe seeds; a group is never divided.

    Groups are shuffled once and dealt into ten folds; probe seed k tests on the k-th and chooses on the next. No item
    is tested twice, so the test items of several probe seeds can be counted together.
    """
    order = list(dict.fromkeys(groups))
    Random(seed).shuffle(order)
    fold_of = {group: number % FOLDS for number, group in enumerate(order)}
    rows = [[row for row, group in enumerate(groups) if fold_of[group] == fold] for fold in range(FOLDS)]
    for test in range(seeds):
        dev = (test + 1) % FOLDS
        train = sorted(row for fold in range(FOLDS) if fold not in (test, dev) for row in rows[fold])
        yield train, rows[dev], rows[test]
