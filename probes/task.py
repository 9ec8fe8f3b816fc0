"""The nouns of probing: a task and its items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from bgt_core.errors import BadInput

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Items:
    """N labelled sentences; those of one group are versions of one sentence and share a split."""

    sentences: list[str]
    labels: list[str]
    groups: list[int]
    splits: list[str] | None = None  # of `SPLITS`, where they are fixed

    def take(self, rows: Sequence[int]) -> Items:
        """The items at `rows`, in that order."""
        parts = (self.sentences, self.labels, self.groups, self.splits)
        return Items(*(None if part is None else [part[row] for row in rows] for part in parts))


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
