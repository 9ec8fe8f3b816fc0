"""The nouns of probing: a task and its items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bgt_core.errors import UsageError

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


Build = Callable[[Any, str, Random], Items]  # (material, language, generator) -> items without splits


@dataclass(frozen=True)
class ProbeTask:
    """A property of sentences, and how labels are made from each kind of material.

    Kinds: "text", different sentences; "texts", {language: `Text`}; "conllu", parsed sentences; "trees", bracketed
    ones. Groups made from "text" are places in it, so that whoever read it can say which sentences belong together.
    """

    name: str
    about: str  # one line: what is predicted
    builds: Mapping[str, Build]  # kind -> labels; the first kind that a folder has is used
    langs: tuple[str, ...] = ()  # none: any language
    file: str = ""  # how SentEval calls its file of labels, without ".txt"
    classes: int = 0  # labels of the published set, where their number may shrink with the data
    reordered: bool = False  # labelled versions of a sentence differ in the order of words alone

    def check(self, lang: str) -> None:
        """BgtError for a language the task is not defined in."""
        if self.langs and lang not in self.langs:
            raise UsageError(f"Task '{self.name}' has no definition for '{lang}'; available: {', '.join(self.langs)}.")

    def items(self, sentences: Sequence[str], lang: str, seed: int = 0) -> Items:
        """Labelled versions of the different `sentences` that the task can use; the others are skipped."""
        self.check(lang)
        if "text" not in self.builds:
            raise UsageError(f"Task '{self.name}' can't be labelled from sentences alone: it needs {needs(self)}.")
        return self.builds["text"](list(dict.fromkeys(sentences)), lang, Random(seed))


def needs(task: ProbeTask, lang: str = "LANG") -> str:
    """The sources of a task, in words."""
    first = lang.split("-")[0]
    kinds = {
        "trees": f"bracketed trees ({first}/*.mrg)",
        "conllu": f"CoNLL-U ({first}_*.conllu, {first}/*.conllu)",
        "text": f"text ({lang}.txt, xx-{lang}.*.tsv)",
        "texts": "text of each language (en.txt and fr.txt, or en-fr.*.tsv) and --lang en-fr",
    }
    labelled = [f"{task.file}.txt or .tsv in SentEval's format"] if task.file else []
    return ", or ".join([*labelled, *(kinds[kind] for kind in task.builds)])
