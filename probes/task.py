"""The data types of probing (task and items), and functions that split sentences into words and marks for all tasks."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

from bgt_core.data.columns import split_langs
from bgt_core.data.trees import CJK
from bgt_core.data.words import MARK, WITHIN
from bgt_core.errors import UsageError

SPLITS = ("train", "dev", "test")
# A word is a run of letters and digits, so l'eau has two and punctuation does not count; in Chinese and Japanese,
# written without spaces, each character is a word.
_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}](?:[^\W{CJK}]|[{WITHIN}])*")
_TOKEN = re.compile(f"{_WORD.pattern}|{MARK}")


@dataclass(frozen=True)
class Items:
    """N labelled sentences; the sentences of a group are versions of one sentence, and are in the same split."""

    sentences: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    splits: list[str] | None = None  # one of `SPLITS` for each sentence, if they are fixed
    translations: list[str] | None = None  # a translation of each sentence, if all have one
    other: str = ""  # the language of the translations

    def add(self, sentence: str, label: str, group: int) -> None:
        """Append an item, to items without splits."""
        self.sentences.append(sentence)
        self.labels.append(label)
        self.groups.append(group)

    def take(self, rows: Sequence[int]) -> Items:
        """Return the items at `rows`, in that order."""
        return Items(
            [self.sentences[row] for row in rows],
            [self.labels[row] for row in rows],
            [self.groups[row] for row in rows],
            None if self.splits is None else [self.splits[row] for row in rows],
            None if self.translations is None else [self.translations[row] for row in rows],
            self.other,
        )

    def translated(self, translations: Sequence[str], other: str) -> Items:
        """Add the translation of each group (an index into `translations`), and join groups with the same translation.
        If a translation is missing, return the items unchanged."""
        texts = [translations[group] for group in self.groups]
        if not all(texts):
            return self
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return replace(self, translations=texts, other=other, groups=[numbers[text] for text in texts])


Build = Callable[[Any, str, Random], Items]  # (content of a source, language, generator) -> items without splits


@dataclass(frozen=True, eq=False)
class ProbeTask:
    """A property of sentences, and the functions that label each kind of source.

    The kinds are "text" (different sentences), "texts" ({language: `Text`}), "conllu" (parsed sentences) and "trees"
    (bracketed trees). Groups of items from "text" are indices into its sentences, from which the caller makes groups.
    """

    name: str
    about: str  # the question that it asks, in one line
    builds: Mapping[str, Build]  # kind -> its labelling function; the first kind that a folder has is used
    langs: tuple[str, ...] = ()  # empty: any language
    file: str = ""  # name of SentEval's labelled file, without ".txt"
    classes: int = 0  # number of labels of the published set, if smaller data may have fewer
    reordered: bool = False  # whether versions of a sentence differ only in the order of words
    group: str = ""  # surface, syntax or semantic, as in SentEval, or style; users can choose tasks by group

    def check(self, lang: str) -> None:
        """Raise UsageError if the task is not defined for the language, or for a wrong number of languages."""
        langs = split_langs(lang)
        if len(langs) != len(set(langs)) or (len(langs) > 1) != ("texts" in self.builds):
            many = "two or more languages, as in en-fr" if "texts" in self.builds else "one language"
            raise UsageError(f"Task '{self.name}' needs {many}, not '{lang}'.")
        if self.langs and lang not in self.langs:
            raise UsageError(f"Task '{self.name}' has no definition for '{lang}'; available: {', '.join(self.langs)}.")

    def items(self, sentences: Sequence[str], lang: str, seed: int = 0) -> Items:
        """Label the different `sentences` that the task can use; the others are skipped.

        Raises UsageError if the task is not defined for the language, or needs more than sentences.
        """
        if "text" not in self.builds:
            raise UsageError(f"Task '{self.name}' can't be labelled from sentences alone: it needs {needs(self)}.")
        self.check(lang)
        return self.builds["text"](list(dict.fromkeys(sentences)), lang, Random(seed))


def needs(task: ProbeTask, lang: str = "LANG") -> str:
    """Describe the sources that a task needs."""
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
    """Return the words and marks of a sentence, in order; every other character except spaces is a mark."""
    return _TOKEN.findall(sentence)


def count_words(sentence: str) -> int:
    """Count the words of a sentence."""
    return len(split_words(sentence))


@cache
def is_punctuation(char: str) -> bool:
    """Test for a punctuation mark: one of ASCII's 32 (with $ + < = > ^ ` | ~), or of Unicode's punctuation."""
    return char in string.punctuation or unicodedata.category(char).startswith("P")
