"""Data for a cell: labelled items, and their source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bgt_core.errors import UsageError
from probes.data.built_in import built_in_items
from probes.data.items import SIZES
from probes.data.load import load_task
from probes.data.splitfile import read_splits, with_splits
from probes.task import Items, ProbeTask


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled items, and their description in a result's trail."""

    items: Items
    about: Mapping[str, Any]  # data, items_sha256, and split_file and card if there are any
    note: str = ""  # a remark on the choice of the data for readers of the score


def dataset_of(items: Items, source: str, **about: Any) -> Dataset:
    """Items from `source`, with their hash."""
    parts = [items.sentences, items.labels, items.groups, items.splits]
    text = json.dumps([*parts, items.translations] if items.translations else parts)
    return Dataset(items, {"data": source, "items_sha256": hashlib.sha256(text.encode()).hexdigest(), **about})


def label_sentences(
    task: ProbeTask, sentences: Sequence[str] | None, lang: str, *, source: str = "own sentences", seed: int = 0
) -> Dataset:
    """Label sentences by the task; None stands for the built-in ones (`built_in_items`)."""
    if sentences is None:
        items, source, note = built_in_items(task, lang, seed)
        return replace(dataset_of(items, source), note=note)
    return dataset_of(task.items(sentences, lang, seed), source)


def load_items(
    task: ProbeTask,
    lang: str,
    data: Path | None = None,
    *,
    column: int | None = None,
    split_file: Path | None = None,
    seed: int = 0,
    senteval: bool = False,
) -> Dataset:
    """Load the items of a task from the file or folder `data`, or built-in ones.

    `column` is that of a TSV, from 1. `split_file` assigns sentences to train, dev and test; otherwise splits are the
    source's own, or with `senteval` drawn in SentEval's sizes. A labelled file is cleaned; with `senteval`, and without
    `split_file`, it is used unchanged. Raises NotFound, DataError or UsageError for data that is absent, damaged, or
    can't be labelled.
    """
    if data is None:
        dataset = label_sentences(task, None, lang, seed=seed)
    else:
        as_senteval = senteval and not split_file
        sizes = SIZES if as_senteval else None
        items, card = load_task(task, lang, data, seed, sizes, column, verbatim=as_senteval)
        dataset = dataset_of(items, str(data), card=card.as_dict())
    if not split_file:
        return dataset
    about = {name: value for name, value in dataset.about.items() if name == "card"}
    items = with_splits(dataset.items, read_splits(split_file))
    return replace(dataset_of(items, dataset.about["data"], split_file=str(split_file), **about), note=dataset.note)


def check_applicable(task: ProbeTask, lang: str, data: Path | None) -> None:
    """Raise UsageError if the task is not defined in this language, or can't be labelled from sentences alone."""
    task.check(lang)
    if data is None and "text" not in task.builds:
        raise UsageError(f"is needed: task '{task.name}' can't be labelled from sentences alone.", parameter="data")
