"""Words that name groups: c-TF-IDF worked by hand, and what no name may be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.core.latents import keywords


def test_words_ignore_case_and_single_letters_and_keep_apostrophes() -> None:
    words = keywords.word_counts(["A train, a TRAIN!", "", "L'homme don't 42 x_y"])
    of_row = [
        {
            (str(words.vocabulary[w]), int(c))
            for r, w, c in zip(words.row, words.word, words.count, strict=True)
            if r == row
        }
        for row in range(3)
    ]
    assert of_row == [{("train", 2)}, set(), {("l'homme", 1), ("don't", 1)}]


def test_ctfidf_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Group 0: "cat" 3 of 7 words, "sat" 3, "the" 1; group 1: "dog" 2 of 5, "the" 3. "the" is in both."""
    monkeypatch.setattr(keywords, "MIN_SENTENCES", 1)
    monkeypatch.setattr(keywords, "MIN_LIFT", 0)
    texts = ["cat cat sat", "cat sat sat the", "dog the the", "dog the"]
    words, groups = keywords.word_counts(texts), np.array([0, 0, 1, 1])
    weight = {  # tf * log(1 + A / f), with A = 12 words / 2 groups
        "cat": 3 / 7 * math.log(1 + 6 / 3),
        "the in 0": 1 / 7 * math.log(1 + 6 / 4),
        "dog": 2 / 5 * math.log(1 + 6 / 2),
        "the in 1": 3 / 5 * math.log(1 + 6 / 4),
    }
    assert weight["cat"] > weight["the in 0"] and weight["dog"] > weight["the in 1"]
    assert keywords.keywords(words, groups, 9, 2) == [["cat", "sat", "the"], ["dog", "the"]]
    monkeypatch.setattr(keywords, "MIN_LIFT", 5)
    assert keywords.keywords(words, groups, 9, 2) == [["cat", "sat"], ["dog"]]  # "the": 3/5 is 4.2 times 1/7
    monkeypatch.setattr(keywords, "MIN_SENTENCES", 3)
    assert keywords.keywords(words, groups, 9, 2) == [[], []]


def test_a_word_that_is_everywhere_names_nothing_and_rows_without_a_group_do_not_count() -> None:
    texts = ["the train leaves"] * 4 + ["the bread is good"] * 4 + ["train train bread"] * 50
    groups = np.repeat([0, 1, -1], [4, 4, 50])
    found = keywords.keywords(keywords.word_counts(texts), groups, 5, 2)
    assert found == [["train", "leaves"], ["bread", "is", "good"]]


def test_names_are_in_the_first_language_and_different() -> None:
    texts = ["the train"] * 3 + ["the bread"] * 3 + ["le train"] * 3 + ["le pain"] * 3 + ["42"] * 2
    groups = np.repeat([0, 1, 0, 2, 3], [3, 3, 3, 3, 2])
    first = np.arange(len(texts)) < 6
    assert keywords.names(keywords.word_counts(texts), groups, first, 3) == ["train", "bread", "pain", ""]
    same = keywords.names(keywords.word_counts(["44"] * 3), np.array([0, 1, 2]), np.ones(3, bool), 3)
    assert same == ["", "", ""]
