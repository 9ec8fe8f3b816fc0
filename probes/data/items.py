"""Select items: balanced, without duplicates, with learnable labels, in the paper's splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from random import Random

from bgt_core.data.clean import join_copies
from probes.task import SPLITS, Items

MIN_ITEMS = 140  # minimum number of items; with fewer, intervals are wider than 16 points
RARE = 20  # minimum number of items of a label; rarer labels can't be learnt, and are left out
SIZES = {"train": 100_000, "dev": 10_000, "test": 10_000}  # numbers of items (paper, sec. 5.2; SentEval)


def balance(items: Items, rng: Random) -> Items:
    """Draw equally many items of every label, as many as the rarest label has, and keep their order."""
    rows: dict[str, list[int]] = {}
    for row in rng.sample(range(len(items.labels)), len(items.labels)):
        rows.setdefault(items.labels[row], []).append(row)
    least = min(map(len, rows.values()), default=0)
    return items.take(sorted(row for label in rows.values() for row in label[:least]))


def distinct(items: Items) -> Items:
    """Keep each sentence once, and each group in one split, as `in_one_split`.

    A sentence with two labels is left out.
    """
    unclear, items = contradicting(items), in_one_split(items)
    rows: dict[str, int] = {}
    for row, sentence in enumerate(items.sentences):
        if sentence not in unclear:
            rows.setdefault(sentence, row)
    return items.take(list(rows.values()))


def contradicting(items: Items) -> dict[str, list[str]]:
    """Return the sentences that have several labels, with these labels."""
    labels: dict[str, dict[str, None]] = {}
    for sentence, label in zip(items.sentences, items.labels, strict=True):
        labels.setdefault(sentence, {})[label] = None
    return {sentence: list(of) for sentence, of in labels.items() if len(of) > 1}


def some(labels: Collection[str]) -> str:
    """Name at most three labels."""
    more = f" and {len(labels) - 3:,} more" if len(labels) > 3 else ""
    return ", ".join(f"'{label[:40]}'" for label in sorted(labels)[:3]) + more


def in_one_split(items: Items) -> Items:
    """Keep each group in one split: a group in several splits stays in test if it is there, else in dev."""
    if items.splits is None:
        return items
    highest: dict[int, int] = {}  # rank of each group's split
    ranks = [SPLITS.index(split) for split in items.splits]
    for group, rank in zip(items.groups, ranks, strict=True):
        highest[group] = max(rank, highest.get(group, 0))
    return items.take([row for row, group in enumerate(items.groups) if ranks[row] == highest[group]])


def with_copies(items: Items) -> Items:
    """Join groups with copies of the same sentence; case, spaces and Unicode form may differ."""
    return replace(items, groups=join_copies(items.sentences, items.groups))


def common(items: Items) -> Items:
    """Keep items with learnable labels: labels that occur in train or, without splits, have at least 20 items."""
    if items.splits:
        learnable = {label for label, split in zip(items.labels, items.splits, strict=True) if split == "train"}
    else:
        learnable = {label for label, count in Counter(items.labels).items() if count >= RARE}
    return items.take([row for row, label in enumerate(items.labels) if label in learnable])


def draw_splits(items: Items, rng: Random, sizes: Mapping[str, int] = SIZES) -> Items:
    """Draw whole groups for test, dev and train, with the numbers of items in `sizes`; other items are left out.

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
