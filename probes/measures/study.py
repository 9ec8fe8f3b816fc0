"""A study: labelled items in one language, with the train, dev and test items of each probe seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.errors import DataError
from probes.data.built_in import built_in_items
from probes.data.items import some
from probes.measures.config import MIN_ITEMS, ProbeConfig
from probes.measures.splits import Cut, cuts_of, select, subsample
from probes.task import SPLITS, Items, ProbeTask

MAX_ITEMS = 10_000


@dataclass(frozen=True, eq=False)
class Study:
    """N labelled items in one language, with the train, dev and test items of each probe seed."""

    task: str
    lang: str
    items: Items
    names: list[str]  # every label, sorted
    labels: np.ndarray  # (N,) indices into `names`
    cuts: list[Cut]
    left_out: int  # items that are not among the N

    @property
    def tested(self) -> np.ndarray:
        """(S, N) booleans: the items that each probe seed is tested on."""
        return np.stack([np.isin(np.arange(len(self.labels)), test) for _, _, test in self.cuts])


def prepare(
    task: ProbeTask,
    sentences: Sequence[str] | Items | None,
    *,
    lang: str,
    config: ProbeConfig,
    in_order: bool = False,
) -> Study:
    """Label sentences (by default the built-in ones), or use items unchanged, and split them.

    Items are in the order drawn, or with `in_order`, in their own, which determines the minibatches. Raises UsageError
    for a language without a definition, DataError for too few items or an empty split.
    """
    task.check(lang)
    if sentences is None:
        sentences = built_in_items(task, lang, config.seed).items
    elif not isinstance(sentences, Items):
        sentences = task.items(sentences, lang, config.seed)
    items, left_out = select(sentences, config.max_items or MAX_ITEMS, config.seed, in_order)
    names, labels = np.unique(items.labels, return_inverse=True)
    if len(labels) < MIN_ITEMS or len(names) < 2:
        kinds = f"the label {some(names)} alone" if len(names) == 1 else f"{len(names)} labels"
        counts = f"{len(labels)} items with {kinds}"
        raise DataError(f"Task '{task.name}' got {counts}; it needs at least {MIN_ITEMS} and 2: give more sentences.")
    cuts = cuts_of(items, config.seeds, config.seed)
    if config.max_train:
        cuts = [(subsample(train, items.groups, config.max_train, config.seed), dev, test) for train, dev, test in cuts]
    for name, rows in zip(SPLITS, cuts[0], strict=True):
        if not len(rows):
            raise DataError(f"Task '{task.name}' has no {name} items: give some, or items without splits.")
    parts = [("train", train) for train, _, _ in cuts] + [("test", np.concatenate([test for *_, test in cuts]))]
    for part, numbers in parts:
        if len(present := np.unique(labels[numbers])) < 2:
            only = names[present[0]]
            raise DataError(
                f"Task '{task.name}' has no {part} items of {some(set(names) - {only})}, only of {some([only])}: give "
                f"{part} items of each label, more seeds, or items without splits."
            )
    return Study(task.name, lang, items, names.tolist(), labels, cuts, left_out)
