"""What is measured, and on what: the wishes of a caller, labelled items, and who is trained and tested on which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from bgt_core.errors import DataError, UsageError
from probes.data.folds import FOLDS, folds
from probes.data.items import SIZES, common
from probes.data.texts import default_sentences
from probes.measures.control_task import CONTROLS
from probes.measures.significance import RESAMPLES
from probes.task import SPLITS, Items, ProbeTask

MAX_ITEMS = 10_000
LEAST = 200  # items; fewer give intervals that say nothing
FEWEST = 100  # resamples that tell a standard error
ERASERS = ("leace", "inlp")

Cut = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of train, dev and test


@dataclass(frozen=True)
class ProbeConfig:
    """What is measured besides accuracy, its intervals and V-information; the defaults take seconds."""

    probe: str = "linear"  # or mlp50: 50 hidden units
    seeds: int = 5  # probes trained, 1 to 10
    seed: int = 0  # of sentences, splits and resamples
    ci: float = 0.95
    max_items: int | None = None  # None: 10,000; the paper's 120,000 with `paper`
    max_train: int | None = None  # training items; the others of train are left out, dev and test stay whole
    baselines: bool = True
    control: str | None = "rare"  # the key of the control task: first, rare; None: no control task
    capacity: bool = False  # accuracy on training items with shuffled labels
    mdl: bool = False  # online codelength
    erase: str | None = None  # leace or inlp, each beside random directions
    curve: bool = False  # accuracy over training items, and over probes of more capacity
    l2: float | None = None  # the penalty, on the sum of losses; None: chosen on dev
    resamples: int = RESAMPLES  # of the test items
    paper: bool = False  # SentEval's protocol, one seed, accuracy alone; the wishes above don't count

    def __post_init__(self) -> None:
        hidden_units(self.probe)
        if not 1 <= self.seeds <= FOLDS:
            raise UsageError(f"--seeds {self.seeds}: choose 1 to {FOLDS}; each tests on its own tenth of the items.")
        if self.max_train is not None and self.max_train < LEAST:
            raise UsageError(f"--max-train {self.max_train}: choose {LEAST} or more.")
        if self.max_items is not None and self.max_items < LEAST:
            raise UsageError(f"--max-items {self.max_items}: choose {LEAST} or more.")
        if self.resamples < FEWEST:
            raise UsageError(f"--bootstrap {self.resamples}: choose {FEWEST} or more resamples.")
        if self.l2 is not None and not 0 < self.l2 < math.inf:
            raise UsageError(f"--l2 {self.l2:g}: choose a penalty above 0, as in 0.001.")
        if not 0 < self.ci < 1:
            raise UsageError(f"--ci {self.ci}: choose a level between 0 and 1, as in 0.95.")
        for name, value, known in (("control", self.control, CONTROLS), ("erase", self.erase, ERASERS)):
            if value is not None and value not in known:
                raise UsageError(f"--{name} {value}: choose from {', '.join(known)}.")


def hidden_units(probe: str) -> int:
    """0 for "linear", 50 for "mlp50"; BgtError for another name."""
    if probe == "linear":
        return 0
    if probe.startswith("mlp") and probe[3:].isdecimal() and int(probe[3:]):
        return int(probe[3:])
    raise UsageError(f"Unknown probe '{probe}': choose linear, or mlp50 for 50 hidden units.")


@dataclass(frozen=True)
class Study:
    """N labelled items in one language, and for each probe seed what it trains on, chooses on and is tested on."""

    task: str
    lang: str
    items: Items
    names: list[str]  # every label, sorted
    labels: np.ndarray  # (N,) places in `names`
    cuts: list[Cut]
    left_out: int  # items that are not among the N

    @property
    def tested(self) -> np.ndarray:
        """(S, N) booleans: the items that each probe seed is tested on."""
        return np.stack([np.isin(np.arange(len(self.labels)), test) for _, _, test in self.cuts])


def prepare(task: ProbeTask, lang: str, sentences: Sequence[str] | Items | None, wish: ProbeConfig) -> Study:
    """Label sentences (without any: the built-in grammar's), or take items as they are, and split them."""
    task.check(lang)
    if not isinstance(sentences, Items):
        sentences = task.items(default_sentences(lang, wish.seed) if sentences is None else sentences, lang, wish.seed)
    most = wish.max_items or (sum(SIZES.values()) if wish.paper else MAX_ITEMS)
    items, left_out = select(sentences, most, wish.seed)
    names, labels = np.unique(np.array(items.labels, dtype=str), return_inverse=True)
    if len(labels) < LEAST or len(names) < 2:
        found = f"{len(labels)} items with {len(names)} labels"
        raise DataError(f"Task '{task.name}' got {found}; it needs {LEAST} and 2: give more sentences.")
    cuts = cuts_of(items, 1 if wish.paper else wish.seeds, wish.seed)
    if wish.max_train:
        cuts = [(fewer(train, items.groups, wish.max_train, wish.seed), dev, test) for train, dev, test in cuts]
    for name, rows in zip(SPLITS, cuts[0], strict=True):
        if not len(rows):
            raise DataError(f"Task '{task.name}' has no {name} items: give some, or items without splits.")
    return Study(task.name, lang, items, names.tolist(), labels, cuts, left_out)


def select(items: Items, most: int, seed: int) -> tuple[Items, int]:
    """At most `most` items, whole groups drawn at random, without labels that can't be learnt; how many stay out."""
    rows: dict[int, list[int]] = {}
    learnt = common(items)
    for row, group in enumerate(learnt.groups):
        rows.setdefault(group, []).append(row)
    order = list(rows)
    Random(seed).shuffle(order)
    chosen: list[int] = []
    for group in order:
        if len(chosen) + len(rows[group]) > most:
            break
        chosen += rows[group]
    return learnt.take(chosen), len(items.labels) - len(chosen)


def cuts_of(items: Items, seeds: int, seed: int) -> list[Cut]:
    """Train, dev and test rows of each probe seed.

    Without fixed splits, folds: eight tenths, one, and one of its own to test, so that no item is tested twice. With
    them, the same for every seed; but each of several leaves another tenth of the groups out of train, as a probe at
    its optimum would else be the same each time.
    """
    if items.splits is None:
        return [tuple(map(np.array, cut)) for cut in folds(items.groups, seeds, seed)]
    kept, groups = np.array(items.splits), np.array(items.groups)
    train, dev, test = (np.flatnonzero(kept == name) for name in SPLITS)
    if seeds == 1:
        return [(train, dev, test)]
    order = np.random.default_rng(seed).permutation(np.unique(groups[train]))
    return [(train[~np.isin(groups[train], order[k::FOLDS])], dev, test) for k in range(seeds)]


def fewer(train: np.ndarray, groups: Sequence[int], most: int, seed: int) -> np.ndarray:
    """At most `most` of the training rows, whole groups drawn at random, in their order."""
    if len(train) <= most:
        return train
    names, place, sizes = np.unique(np.array(groups)[train], return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = order[sizes[order].cumsum() <= most]
    return train[np.isin(place, chosen)]
