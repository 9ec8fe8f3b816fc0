"""Splits from a user's file: it assigns sentences to train, dev and test, whatever the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bgt_core.data.clean import copy_key
from bgt_core.data.textfile import column_hint, text_lines
from bgt_core.errors import DataError
from probes.data.items import distinct, with_copies
from probes.data.labelled import SPLIT_NAMES
from probes.task import SPLITS, Items

NAMES = SPLIT_NAMES | {name: name for name in SPLITS}


def read_splits(file: Path) -> dict[str, str]:
    """Read sentence -> "train", "dev" or "test" from lines SPLIT TAB SENTENCE; tr, va and te are accepted, as in
    SentEval.

    Sentences are keys, as of `copy_key`. Raises DataError with file and line.
    """
    split_of: dict[str, str] = {}
    for number, line in text_lines(file):
        split, *rest = line.split("\t")
        sentence = copy_key(rest[0]) if len(rest) == 1 else ""
        if split not in NAMES or not sentence:
            hint = column_hint(line, 2)
            raise DataError(f"{file}:{number}: expected a split ({', '.join(NAMES)}), a tab and a sentence{hint}.")
        if split_of.setdefault(sentence, NAMES[split]) != NAMES[split]:
            raise DataError(f"{file}:{number}: '{rest[0]}' is in two splits; keep one of them.")
    return split_of


def with_splits(items: Items, splits: Mapping[str, str]) -> Items:
    """Select the items whose sentence, or another version of it (of the same group), is in `splits`.

    A group in several splits stays in test, or else in dev, as in `distinct`. DataError if a split is empty.
    """
    split_of: dict[int, str] = {}  # group -> its split
    items = with_copies(items)
    for sentence, group in zip(map(copy_key, items.sentences), items.groups, strict=True):
        if sentence in splits:
            split_of[group] = max(splits[sentence], split_of.get(group, splits[sentence]), key=SPLITS.index)
    kept = items.take([row for row, group in enumerate(items.groups) if group in split_of])
    kept = distinct(replace(kept, splits=[split_of[group] for group in kept.groups]))
    if absent := [split for split in SPLITS if split not in (kept.splits or ())]:
        raise DataError(
            f"assigns no sentence of this task to {absent[0]}; list sentences of the task for train, dev and test.",
            parameter="split_file",
        )
    return kept
