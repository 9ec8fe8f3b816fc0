"""The nouns of probing: a task, its items, its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from bgt_core.errors import BadInput


@dataclass(frozen=True)
class Items:
    """N labelled sentences; those of one group are versions of one sentence and share a split."""

    sentences: list[str]
    labels: list[str]
    groups: list[int]

    def take(self, rows: Sequence[int]) -> Items:
        """The items at `rows`, in that order."""
        return Items(*([part[row] for row in rows] for part in (self.sentences, self.labels, self.groups)))


@dataclass(frozen=True)
class ProbeTask:
    """A property of sentences that can be labelled from raw text."""

    name: str
    about: str  # one line: what is predicted, and how labels are made
    build: Callable[[Sequence[str], str, Random], Items]
    langs: tuple[str, ...] = ()  # none: any language

    def check(self, lang: str) -> None:
        """BadInput for a language the task is not defined in."""
        if self.langs and lang not in self.langs:
            raise BadInput(f"Task '{self.name}' has no definition for '{lang}'; available: {', '.join(self.langs)}.", 2)

    def items(self, sentences: Sequence[str], lang: str, seed: int = 0) -> Items:
        """Labelled versions of the different `sentences` that the task can use; the others are skipped."""
        self.check(lang)
        return self.build(list(dict.fromkeys(sentences)), lang, Random(seed))


@dataclass(frozen=True)
class Row:
    """Test accuracy of one latent or baseline; accuracies are fractions."""

    task: str
    lang: str
    latent: str  # semantic, language, or the name of a baseline
    n_train: int  # items a probe is trained on, mean over seeds
    n_test: int  # different items tested, all seeds together
    classes: int
    accuracy: float
    ci_low: float  # Wilson
    ci_high: float
    sd: float  # of accuracy over seeds; 0 for one seed
    note: str = ""


@dataclass(frozen=True)
class Difference:
    """Accuracy of the first latent minus that of the second on the same test items, in points (0 to 100)."""

    task: str
    lang: str
    first: str
    second: str
    points: float
    ci_low: float  # bootstrap over groups
    ci_high: float
    mcnemar_p: float  # exact, two-sided


@dataclass(frozen=True)
class ProbeResult:
    """One task in one language."""

    task: str
    lang: str
    seeds: int
    seed: int
    ci: float
    rows: list[Row]
    difference: Difference | None  # of the first two latents
    left_out: int  # items left out because their label is rare or --max-items was reached

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
