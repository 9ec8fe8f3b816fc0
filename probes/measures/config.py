"""The options of a probe's measures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bgt_core.errors import UsageError, check_choice, check_least
from probes.data.folds import FOLDS
from probes.data.items import MIN_ITEMS
from probes.measures.control_task import CONTROLS
from probes.measures.significance import MIN_RESAMPLES, RESAMPLES

ERASERS = ("leace", "inlp")


@dataclass(frozen=True)
class ProbeConfig:
    """The options of a probe, and its measures besides accuracy, intervals and V-information; the defaults take
    seconds.

    Raises UsageError for a value out of range:

        >>> ProbeConfig(seeds=3, control=None)  # doctest: +ELLIPSIS
        ProbeConfig(probe='linear', seeds=3, ...)
        >>> ProbeConfig(seeds=11)
        Traceback (most recent call last):
        bgt_core.errors.UsageError: seeds 11: choose 1 to 10; each tests on its own tenth of the items.
    """

    probe: str = "linear"  # or mlp50: 50 hidden units
    seeds: int = 5  # probes trained, 1 to 10
    seed: int = 0  # of sentences, splits and resamples
    level: float = 0.95  # level of the intervals
    max_items: int | None = None  # None: 10,000; all by SentEval's protocol
    max_train: int | None = None  # maximum number of training items; dev and test stay whole
    baselines: bool = True
    control: str | None = "rare"  # the key of the control task: first, rare; None: no control task
    capacity: bool = False  # accuracy on training items with shuffled labels
    mdl: bool = False  # online codelength
    erase: str | None = None  # leace or inlp, each beside random directions
    curve: bool = False  # learning curve over training items, and over probes of more capacity
    l2: float | None = None  # the penalty, on the sum of losses; None: chosen on dev
    resamples: int = RESAMPLES  # of the test items

    def __post_init__(self) -> None:
        hidden_units(self.probe)
        if not 1 <= self.seeds <= FOLDS:
            raise UsageError(
                f"{self.seeds}: choose 1 to {FOLDS}; each tests on its own tenth of the items.", parameter="seeds"
            )
        check_least(MIN_ITEMS, max_train=self.max_train, max_items=self.max_items)
        check_least(MIN_RESAMPLES, resamples=self.resamples)
        if self.l2 is not None and not 0 < self.l2 < math.inf:
            raise UsageError(f"{self.l2:g}: choose a penalty above 0, as in 0.001.", parameter="l2")
        if not 0 < self.level < 1:
            raise UsageError(f"{self.level}: choose a level between 0 and 1, as in 0.95.", parameter="level")
        check_choice(CONTROLS, control=self.control)
        check_choice(ERASERS, erase=self.erase)


def hidden_units(probe: str) -> int:
    """0 for "linear", 50 for "mlp50"; UsageError for another name."""
    if probe == "linear":
        return 0
    if probe.startswith("mlp") and probe[3:].isdecimal() and int(probe[3:]):
        return int(probe[3:])
    raise UsageError(f"{probe}: choose linear, or mlp50 for 50 hidden units.", parameter="probe")
