"""Select items: balanced, without duplicates, with learnable labels, in the paper's splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from probes.task import SPLITS, Items

MIN_ITEMS = 200  # fewer give intervals too wide to be useful
RARE = 20  # items; a rarer label can't be learnt, and is left out
SIZES = {"train": 100_000, "dev": 10_000, "test": 10_000}  # items (paper, sec. 5.2; SentEval)


def balance(items: Items, rng: Random) -> Items:
    """Draw as many items of every label as the rarest has, and keep their order."""
    rows: dict[str, list[int]] = {}
    for row in rng.sample(range(len(items.labels)), len(items.labels)):
        rows.setdefault(items.labels[row], []).append(row)
    least = min(map(len, rows.values()), default=0)
    return items.take(sorted(row for label in rows.values() for row in label[:least]))


def distinct(items: Items) -> Items:
    """Keep each sentence once, and each group in one split.

    A sentence with two labels is left out. A group in several splits stays in test, or else in dev.
    """
    labels: dict[str, set[str]] = {}
    for sentence, label in zip(items.sentences, items.labels, strict=True):
        labels.setdefault(sentence, set()).add(label)
    ranks = [SPLITS.index(split) for split in items.splits] if items.splits else [0] * len(items.labels)
    highest: dict[int, int] = {}  # rank of each group's split
    for group, rank in zip(items.groups, ranks, strict=True):
        highest[group] = max(rank, highest.get(group, 0))
    kept: dict[str, int] = {}  # sentence -> row
    for row, (sentence, group) in enumerate(zip(items.sentences, items.groups, strict=True)):
        if len(labels[sentence]) == 1 and ranks[row] == highest[group]:
            kept.setdefault(sentence, row)
    return items.take(list(kept.values()))


def common(items: Items) -> Items:
    """The items of learnable labels: those that occur in train, or without splits, those with at least 20 items."""
    if items.splits:
        learnable = {label for label, split in zip(items.labels, items.splits, strict=True) if split == "train"}
    else:
        learnable = {label for label, count in Counter(items.labels).items() if count >= RARE}
    return items.take([row for row, label in enumerate(items.labels) if label in learnable])


def draw_splits(items: Items, rng: Random, sizes: Mapping[str, int] = SIZES) -> Items:
    """Draw whole groups for test, dev and train, with as many items as `sizes`; the rest is left out.

    With fewer items, the splits keep their proportions.
    """
    total = sum(sizes.values())
    room = dict(sizes)
    if len(items.labels) < total:
        room = {split: len(items.labels) * size // total for split, size in sizes.items()}
        room["train"] = len(items.labels)
    rows: dict[int, list[int]] = {}
    for row, group in enumerate(items.groups):
        rows.setdefault(group, []).append(row)
    order = list(rows)
    rng.shuffle(order)
    split_of: dict[int, str] = {}  # row -> its split
    for group in order:
        for split in reversed(SPLITS):
            if len(rows[group]) <= room[split]:
                room[split] -= len(rows[group])
                split_of |= dict.fromkeys(rows[group], split)
                break
    drawn = sorted(split_of)
    return replace(items.take(drawn), splits=[split_of[row] for row in drawn])
