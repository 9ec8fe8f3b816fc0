"""Probing tasks and their labelled sentences; functions that balance and split them, and that split text into words."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

from bgt_core.data.clean import join_copies
from bgt_core.data.columns import split_langs
from bgt_core.data.text import MARK, WITHIN
from bgt_core.data.trees import CJK
from bgt_core.errors import UsageError

SPLITS = ("train", "dev", "test")
MIN_ITEMS = 140  # minimum number of items of a task; with fewer items, intervals are wider than 16 points
RARE = 20  # minimum number of items per label; rarer labels can't be learnt, and are left out
SIZES = {"train": 100_000, "dev": 10_000, "test": 10_000}  # number of items of each split (BGT paper; SentEval).
# A word is a run of letters and digits: l'eau has two words, and punctuation has none. In Chinese and Japanese, which
# are written without spaces, each character is a word.
_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}](?:[^\W{CJK}]|[{WITHIN}])*")
_TOKEN = re.compile(f"{_WORD.pattern}|{MARK}")


@dataclass(frozen=True)
class Items:
    """N labelled sentences. The sentences of a group are versions of one sentence, and must be in the same split."""

    sentences: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    splits: list[str] | None = None  # the split of each sentence, one of `SPLITS`; None if splits are not fixed
    translations: list[str] | None = None  # the translation of each sentence; None if any is missing
    other: str = ""  # the language of the translations

    def add(self, sentence: str, label: str, group: int) -> None:
        """Append an item. The items must have no splits."""
        self.sentences.append(sentence)
        self.labels.append(label)
        self.groups.append(group)

    def take(self, rows: Sequence[int]) -> Items:
        """Return the items with the indices `rows`, in that order."""
        return Items(
            [self.sentences[row] for row in rows],
            [self.labels[row] for row in rows],
            [self.groups[row] for row in rows],
            None if self.splits is None else [self.splits[row] for row in rows],
            None if self.translations is None else [self.translations[row] for row in rows],
            self.other,
        )

    def translated(self, translations: Sequence[str], other: str) -> Items:
        """Add the translation `translations[g]` to each item of group g, and join groups with the same translation.

        If any item's translation is empty, the items are returned unchanged.
        """
        texts = [translations[group] for group in self.groups]
        if not all(texts):
            return self
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return replace(self, translations=texts, other=other, groups=[numbers[text] for text in texts])


Build = Callable[[Any, str, Random], Items]  # (content of files, language, random generator) -> items without splits


@dataclass(frozen=True, eq=False)
class ProbeTask:
    """A property of sentences, and the functions that label sentences from each kind of source.

    The kinds of sources are "text" (different sentences), "texts" ({language: `Text`}), "conllu" (parsed sentences) and
    "trees" (bracketed trees). For "text", a labelling function stores the index of an item's sentence in `groups`; the
    caller replaces the index by the group number of the sentence.
    """

    name: str
    about: str  # the question to answer about a sentence, in one line
    builds: Mapping[str, Build]  # kind of source -> labelling function; the first kind that the folder contains is used
    langs: tuple[str, ...] = ()  # languages for which the task is defined; empty: any language
    file: str = ""  # name of SentEval's labelled file, without ".txt"
    classes: int = 0  # number of labels in the published data, if smaller data may have fewer labels; otherwise 0
    reordered: bool = False  # whether the versions of a sentence differ only in word order
    group: str = ""  # surface, syntax or semantic, as in SentEval, or style; users can choose tasks by group

    def check(self, lang: str) -> None:
        """Raise UsageError if the task is not defined for `lang`, or if `lang` has the wrong number of languages."""
        langs = split_langs(lang)
        if len(langs) != len(set(langs)) or (len(langs) > 1) != ("texts" in self.builds):
            many = "two or more languages, as in en-fr" if "texts" in self.builds else "one language"
            raise UsageError(f"Task '{self.name}' needs {many}, not '{lang}'.")
        if self.langs and lang not in self.langs:
            raise UsageError(f"Task '{self.name}' is not defined for '{lang}'; choose from {', '.join(self.langs)}.")

    def items(self, sentences: Sequence[str], lang: str, seed: int = 0) -> Items:
        """Label sentences. Sentences that the task can't label are skipped, and so are copies of an earlier sentence.

        Raises UsageError if the task is not defined for the language, or if it needs parses or labelled files.
        """
        if "text" not in self.builds:
            raise UsageError(f"Task '{self.name}' can't be labelled from sentences alone: it needs {needs(self)}.")
        self.check(lang)
        return self.builds["text"](list(dict.fromkeys(sentences)), lang, Random(seed))


def needs(task: ProbeTask, lang: str = "LANG") -> str:
    """Describe, for a message, the files from which a task can be labelled."""
    first = split_langs(lang)[0]
    kinds = {
        "trees": f"bracketed trees ({first}/*.mrg)",
        "conllu": f"CoNLL-U ({first}_*.conllu, {first}/*.conllu)",
        "text": f"text ({lang}.txt, xx-{lang}.*.tsv)",
        "texts": "text of each language (en.txt and fr.txt, or en-fr.*.tsv), named together as en-fr",
    }
    labelled = [f"{task.file}.txt or .tsv in SentEval's format"] if task.file else []
    return ", or ".join([*labelled, *(kinds[kind] for kind in task.builds)])


def split_words(sentence: str) -> list[str]:
    """Return the words of a sentence, in order."""
    return _WORD.findall(sentence)


def split_tokens(sentence: str) -> list[str]:
    """Return the words and marks of a sentence, in order; a mark is any other character except a space."""
    return _TOKEN.findall(sentence)


def count_words(sentence: str) -> int:
    """Count the words of a sentence."""
    return len(split_words(sentence))


@cache
def is_punctuation(char: str) -> bool:
    """Return whether a character is punctuation in Unicode, or one of ASCII's 32 marks, such as $ + < = > ^ ` | ~."""
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def balance(items: Items, rng: Random) -> Items:
    """Draw as many items of every label as the rarest label has; the items keep their order."""
    rows: dict[str, list[int]] = {}
    for row in rng.sample(range(len(items.labels)), len(items.labels)):
        rows.setdefault(items.labels[row], []).append(row)
    least = min(map(len, rows.values()), default=0)
    return items.take(sorted(row for label in rows.values() for row in label[:least]))


def distinct(items: Items) -> Items:
    """Keep each sentence once, or not at all if it has several labels; keep each group in only one split."""
    unclear, items = contradicting(items), in_one_split(items)
    rows: dict[str, int] = {}
    for row, sentence in enumerate(items.sentences):
        if sentence not in unclear:
            rows.setdefault(sentence, row)
    return items.take(list(rows.values()))


def contradicting(items: Items) -> dict[str, list[str]]:
    """Return the sentences that have several labels, each with its labels."""
    labels: dict[str, dict[str, None]] = {}
    for sentence, label in zip(items.sentences, items.labels, strict=True):
        labels.setdefault(sentence, {})[label] = None
    return {sentence: list(of) for sentence, of in labels.items() if len(of) > 1}


def some(labels: Collection[str]) -> str:
    """List at most three labels for a message, and count the others."""
    more = f" and {len(labels) - 3:,} more" if len(labels) > 3 else ""
    return ", ".join(f"'{label[:40]}'" for label in sorted(labels)[:3]) + more


def in_one_split(items: Items) -> Items:
    """Keep each group in only one split: in test if the group occurs there, else in dev, else in train."""
    if items.splits is None:
        return items
    highest: dict[int, int] = {}  # group number -> rank of the split in which the group stays
    ranks = [SPLITS.index(split) for split in items.splits]
    for group, rank in zip(items.groups, ranks, strict=True):
        highest[group] = max(rank, highest.get(group, 0))
    return items.take([row for row, group in enumerate(items.groups) if ranks[row] == highest[group]])


def with_copies(items: Items) -> Items:
    """Join groups that contain copies of the same sentence; case, spaces and Unicode form may differ."""
    return replace(items, groups=join_copies(items.sentences, items.groups))


def common(items: Items) -> Items:
    """Keep items whose label can be learnt: it occurs in train or, if there are no splits, has at least 20 items."""
    if items.splits:
        learnable = {label for label, split in zip(items.labels, items.splits, strict=True) if split == "train"}
    else:
        learnable = {label for label, count in Counter(items.labels).items() if count >= RARE}
    return items.take([row for row, label in enumerate(items.labels) if label in learnable])


def draw_splits(items: Items, rng: Random, sizes: Mapping[str, int] = SIZES) -> Items:
    """Draw whole groups for test, dev and train. If there are too few items, all sizes shrink by the same factor."""
    total = sum(sizes.values())
    room = dict(sizes)
    if len(items.labels) < total:
        room = {split: len(items.labels) * size // total for split, size in sizes.items()}
        room["train"] = len(items.labels)
    rows: dict[int, list[int]] = {}
    for row, group in enumerate(items.groups):
        rows.setdefault(group, []).append(row)
    order = list(rows)
    rng.shuffle(order)
    split_of: dict[int, str] = {}  # index of an item -> its split
    for group in order:
        for split in reversed(SPLITS):
            if len(rows[group]) <= room[split]:
                room[split] -= len(rows[group])
                split_of |= dict.fromkeys(rows[group], split)
                break
    drawn = sorted(split_of)
    return replace(items.take(drawn), splits=[split_of[row] for row in drawn])
