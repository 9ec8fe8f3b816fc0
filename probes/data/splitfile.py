"""Splits given by hand: which sentences train, which choose, which are tested, whatever the labels are made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bgt_core.data.parallel import lines
from bgt_core.data.text import normalise
from bgt_core.errors import DataError
from probes.data.items import distinct
from probes.data.labelled import SPLIT_NAMES
from probes.task import SPLITS, Items

NAMES = SPLIT_NAMES | {name: name for name in SPLITS}


def read_splits(file: Path) -> dict[str, str]:
    """Sentence -> "train", "dev" or "test", of lines SPLIT TAB SENTENCE; tr, va and te are read as SentEval's.

    Sentences as the task has them, normalised. Raises BgtError with file and line.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(lines(file), 1):
        try:
            split, *rest = line.decode().split("\t")
        except UnicodeDecodeError:
            raise DataError(f"{file}:{number}: not UTF-8; convert the file to UTF-8.") from None
        sentence = normalise(rest[0]) if len(rest) == 1 else ""
        if split not in NAMES or not sentence:
            raise DataError(f"{file}:{number}: expected a split ({', '.join(NAMES)}), a tab and a sentence.")
        if found.setdefault(sentence, NAMES[split]) != NAMES[split]:
            raise DataError(f"{file}:{number}: '{sentence}' is in two splits; keep one of them.")
    return found


def with_splits(items: Items, splits: Mapping[str, str]) -> Items:
    """The items that have a split there, themselves or by another version of the sentence (of their group).

    A group that several splits hold stays in test, or else in dev, as in `distinct`. BgtError where a split is empty.
    """
    of_group: dict[int, str] = {}
    rows = zip(items.sentences, items.groups, strict=True)
    for group, split in ((group, splits[sentence]) for sentence, group in rows if sentence in splits):
        of_group[group] = max(split, of_group.get(group, split), key=SPLITS.index)
    kept = [row for row, group in enumerate(items.groups) if group in of_group]
    found = items.take(kept)
    found = distinct(Items(found.sentences, found.labels, found.groups, [of_group[group] for group in found.groups]))
    if absent := [split for split in SPLITS if split not in found.splits]:
        raise DataError(
            f"--split-file names no {absent[0]} item of this task: its sentences must be those of the task."
        )
    return found
