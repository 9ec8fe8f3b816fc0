"""A study: the options of its probes, and labelled items with the train, dev and test items of each probe seed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from bgt_core.errors import DataError, UsageError, check_least
from probes.data.items import MIN_ITEMS, common, in_one_split, some, with_copies
from probes.data.load import label_sentences
from probes.measures.significance import MIN_RESAMPLES, RESAMPLES
from probes.task import SPLITS, Items, ProbeTask

MAX_ITEMS = 10_000
FOLDS = 10  # one fold is for testing, one for choosing the strength, the others for training

Cut = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of train, dev and test


@dataclass(frozen=True)
class ProbeConfig:
    """The options of a probe, and of the measures besides accuracy, intervals and V-information. With the defaults, a
    probe takes seconds.

    Raises UsageError for a value out of range:

        >>> ProbeConfig(seeds=3, control=False)  # doctest: +ELLIPSIS
        ProbeConfig(probe='linear', seeds=3, ...)
        >>> ProbeConfig(seeds=11)
        Traceback (most recent call last):
        bgt_core.errors.UsageError: seeds 11: choose 1 to 10; each tests on its own tenth of the items.
    """

    probe: str = "linear"  # or mlp50: 50 hidden units
    seeds: int = 5  # number of probes, 1 to 10
    seed: int = 0  # random seed of sentences, splits and resamples
    max_items: int | None = None  # None: 10,000, or all with SentEval's protocol
    baselines: bool = True
    control: bool = True  # whether to measure selectivity, with a control task
    resamples: int = RESAMPLES  # number of resamples of the test items
    senteval: bool = False  # SentEval's protocol (`probes.classifiers.senteval`): one seed, accuracy only

    def __post_init__(self) -> None:
        hidden_units(self.probe)
        if not 1 <= self.seeds <= FOLDS:
            raise UsageError(
                f"{self.seeds}: choose 1 to {FOLDS}; each tests on its own tenth of the items.", parameter="seeds"
            )
        check_least(MIN_ITEMS, max_items=self.max_items)
        check_least(MIN_RESAMPLES, resamples=self.resamples)


def hidden_units(probe: str) -> int:
    """Return 0 for "linear", 50 for "mlp50"; UsageError for another name."""
    if probe == "linear":
        return 0
    if probe.startswith("mlp") and probe[3:].isdecimal() and int(probe[3:]):
        return int(probe[3:])
    raise UsageError(f"{probe}: choose linear, or mlp50 for 50 hidden units.", parameter="probe")


@dataclass(frozen=True, eq=False)
class Study:
    """N labelled items in one language, with the train, dev and test items of each probe seed."""

    task: str
    lang: str
    items: Items
    names: list[str]  # every label, sorted
    labels: np.ndarray  # (N,) indices into `names`
    cuts: list[Cut]
    left_out: int  # number of other items, which were left out

    @property
    def tested(self) -> np.ndarray:
        """(S, N) booleans: the items that each probe seed is tested on."""
        return np.stack([np.isin(np.arange(len(self.labels)), test) for _, _, test in self.cuts])


def prepare(task: ProbeTask, sentences: Sequence[str] | Items | None, *, lang: str, config: ProbeConfig) -> Study:
    """Label sentences (by default the built-in ones), or use items unchanged, and split them.

    The order of items is random or, with SentEval's protocol, unchanged, because it determines the minibatches. Raises
    UsageError if the task is not defined for the language, DataError for too few items or an empty split.
    """
    task.check(lang)
    if not isinstance(sentences, Items):
        sentences = label_sentences(task, sentences, lang, seed=config.seed).items
    limit = config.max_items or (sys.maxsize if config.senteval else MAX_ITEMS)
    items, left_out = select(sentences, limit, config.seed, in_order=config.senteval)
    names, labels = np.unique(items.labels, return_inverse=True)
    if len(labels) < MIN_ITEMS or len(names) < 2:
        kinds = f"the label {some(names)} alone" if len(names) == 1 else f"{len(names)} labels"
        counts = f"{len(labels)} items with {kinds}"
        raise DataError(f"Task '{task.name}' got {counts}; it needs at least {MIN_ITEMS} and 2: give more sentences.")
    cuts = cuts_of(items, 1 if config.senteval else config.seeds, config.seed)
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


def select(items: Items, limit: int, seed: int, in_order: bool = False) -> tuple[Items, int]:
    """Draw at most `limit` items in whole groups, without labels that can't be learnt; also return the number left out.

    Items are in random order or, with `in_order`, in their own, with repeats. Copies of a sentence are one group;
    without `in_order` they stay in one split.
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
    """Return the train, dev and test rows of each of at most 10 probe seeds; groups are never divided.

    Without fixed splits, groups are shuffled once and divided into ten folds. The test fold of probe seed k is fold k,
    and its dev fold is the next. No item is tested twice, so the test items of several seeds can be counted together.

    Fixed splits are the same for every seed. But if there are several seeds, each leaves a different tenth of the
    groups out of train, because otherwise a probe at its optimum would be the same each time.
    """
    if items.splits is None:
        order = list(dict.fromkeys(items.groups))
        Random(seed).shuffle(order)
        fold_of = {group: number % FOLDS for number, group in enumerate(order)}
        fold = np.array([fold_of[group] for group in items.groups])
        tests = [(test, (test + 1) % FOLDS) for test in range(seeds)]
        return [
            (np.flatnonzero((fold != test) & (fold != dev)), np.flatnonzero(fold == dev), np.flatnonzero(fold == test))
            for test, dev in tests
        ]
    names, groups = np.array(items.splits), np.array(items.groups)
    train, dev, test = (np.flatnonzero(names == name) for name in SPLITS)
    if seeds == 1:
        return [(train, dev, test)]
    dealt = np.random.default_rng(seed).permutation(np.unique(groups[train]))
    return [(train[~np.isin(groups[train], dealt[k::FOLDS])], dev, test) for k in range(seeds)]
