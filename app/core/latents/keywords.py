"""The words that tell groups of sentences apart, by class-based TF-IDF (c-TF-IDF; Grootendorst 2022, "BERTopic").

  weight of word x in group c = tf(x, c) * log(1 + A / f(x))

tf(x, c) is the fraction of the group's words that are x, f(x) the count of x in all groups, A the mean number of words
in a group. In short sentences, words such as "the" and "is" still weigh too much, and lists of stop words do not exist
for every language. So a word stands for a group only if it is twice as frequent there as elsewhere, occurs in three of
its sentences, and in at most 3 % of all sentences, or ten, unless four in five of its uses are in the group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

WORD = re.compile(r"\n|[^\W\d_]+(?:['’][^\W\d_]+)*")
MIN_LIFT, MIN_SENTENCES = 2.0, 3
MAX_SHARE, FEW, OWN = 0.03, 10, 0.8


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Each different word of each of N sentences, ignoring case: words `vocabulary[word]` of the sentences `row`."""

    vocabulary: np.ndarray  # (V,) str
    row: np.ndarray  # (T,) int
    word: np.ndarray  # (T,) int
    count: np.ndarray  # (T,) int: how often it is in the sentence


def word_counts(texts: Sequence[str]) -> WordCounts:
    """The words of sentences: runs of two letters or more, apostrophes inside them included."""
    one_a_line = "\n".join(text.replace("\n", " ") for text in texts)
    tokens = np.array(WORD.findall(one_a_line.lower()), object)
    codes, vocabulary = pd.factorize(tokens)
    breaks = tokens == "\n"
    row = np.cumsum(breaks)
    kept = ~breaks & (np.fromiter(map(len, vocabulary), int, len(vocabulary)) > 1)[codes]
    pairs, count = np.unique(row[kept] * len(vocabulary) + codes[kept], return_counts=True)
    return WordCounts(vocabulary.astype(str), *np.divmod(pairs, max(1, len(vocabulary))), count)


def keywords(words: WordCounts, groups: np.ndarray, count: int, size: int) -> list[list[str]]:
    """The up to `count` heaviest words of each of `size` groups, the heaviest first; `groups` (N,) int, -1 for none."""
    group = groups[words.row]
    there = group >= 0
    width = len(words.vocabulary)
    cell, shape = group[there] * width + words.word[there], (size, width)
    times = np.bincount(cell, words.count[there], size * width).reshape(shape)
    sentences = np.bincount(cell, minlength=size * width).reshape(shape)
    total, everywhere = times.sum(1, keepdims=True), times.sum(0)
    elsewhere = (everywhere - times) / np.maximum(1, everywhere.sum() - total)
    frequency = times / np.maximum(1, total)
    weight = frequency * np.log1p(everywhere.sum() / size / np.maximum(1, everywhere))
    common = sentences.sum(0) > max(FEW, MAX_SHARE * len(np.unique(words.row[there])))
    common &= times.max(0) < OWN * everywhere
    weight[(sentences < MIN_SENTENCES) | (frequency < MIN_LIFT * elsewhere) | common] = 0
    order = np.argsort(-weight, axis=1, kind="stable")[:, :count]
    return [[str(words.vocabulary[at]) for at in best if weight[row, at] > 0] for row, best in enumerate(order)]


def names(words: WordCounts, groups: np.ndarray, first: np.ndarray, count: int) -> list[str]:
    """Name each group by up to `count` of its words in the sentences `first` (N,) bool, of one language; if it has none
    there, by words of other languages; "" if it has none at all. All others differ."""
    sides = [keywords(words, np.where(side, groups, -1), count, int(groups.max()) + 1) for side in (first, ~first)]
    result: list[str] = []
    for number, (in_first, in_others) in enumerate(zip(*sides, strict=True)):
        name = ", ".join(in_first or in_others)
        result.append(f"{name} ({number + 1})" if name and name in result else name)
    return result
