"""Vectors of many sentences are computed once, kept once, and dropped when others need the memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from app.core import state
from app.core.state import filled


class Counting:
    """Embed each sentence as its length and that of its language's name; record the texts."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: Sequence[str], lang: str) -> np.ndarray:
        self.seen += texts
        return np.array([[len(text), len(lang)] for text in texts], np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    monkeypatch.setattr(state, "AT_ONCE", 2)


PARTS = [("en", ["a", "bb", "ccc"]), ("fra", ["dddd"])]


def test_each_sentence_is_embedded_once_in_its_language_and_there_is_one_copy() -> None:
    embed = Counting()
    vectors = filled("key", PARTS, embed)
    assert vectors.tolist() == [[1, 2], [2, 2], [3, 2], [4, 3]]
    assert filled("key", PARTS, embed) is vectors and not vectors.flags.writeable
    assert embed.seen == ["a", "bb", "ccc", "dddd"]


def test_the_longest_unused_go_when_they_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "KEPT_BYTES", 2 * 4 * 2 * 4)  # two matrices of 4 rows with 2 float32 numbers
    embed = Counting()
    for key in ("first", "second", "first", "third", "first"):
        filled(key, PARTS, embed)
    assert len(embed.seen) == 3 * 4
    filled("second", PARTS, embed)
    assert len(embed.seen) == 4 * 4
