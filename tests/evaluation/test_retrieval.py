"""Translation retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom

from bgt_core.errors import BgtError
from bgt_core.evaluation import retrieval as module
from bgt_core.evaluation.retrieval import nearest, precision_at_1, retrieval, share, side
from bgt_core.vectors.compare import unit


class Lookup:
    """Any language; a sentence is its number, and a row of a table."""

    langs: Sequence[str] = ()
    latents = ("semantic",)

    def __init__(self, table: np.ndarray):
        self.table = table

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return self.table[[int(sentence) for sentence in sentences]].astype(np.float32)


def numbers(*rows: int) -> list[str]:
    return [str(row) for row in rows]


def test_by_hand() -> None:
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.1]])
    answers = np.array([[9.0, 0.1], [0.1, 0.2], [0.2, 5.0], [-3.0, 0.0]])  # nearest: 0, 2, 1, 3
    assert precision_at_1(queries, answers) == 0.5
    sides = (side(Lookup(table), numbers(0, 1, 2, 3), lang) for table, lang in ((queries, "en"), (answers, "fr")))
    found = retrieval(*sides)
    assert found.there.tolist() == [True, False, False, True]
    assert found.back.tolist() == [True, False, False, True]  # from the right, nearest: 0, 2, 1, 3
    assert found.mined is None


def test_perfect_and_scale_free() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8))
    assert precision_at_1(vectors, vectors * np.arange(1, 51)[:, None]) == 1.0
    assert precision_at_1(vectors, np.roll(vectors, 1, axis=0)) == 0.0


def test_chance() -> None:
    left, right = np.random.default_rng(0).normal(size=(2, 1000, 4))
    assert precision_at_1(left, right) == pytest.approx(0.001, abs=0.004)


def test_vectors_of_zeros_find_nothing_but_the_first() -> None:
    assert precision_at_1(np.zeros((4, 3)), np.ones((4, 3))) == 0.25


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, answers = np.random.default_rng(0).normal(size=(2, 50, 3))
    whole = nearest(queries, answers)
    monkeypatch.setattr(module, "BLOCK", 7)
    assert (nearest(queries, answers) == whole).all()


def test_copies_are_embedded_once_and_a_hit_is_the_same_line() -> None:
    """Lines 0 and 2 are one translation; lines 1 and 3 have one French sentence for two English ones."""
    table = np.eye(5)
    left, right = side(Lookup(table), numbers(0, 1, 0, 2), "en"), side(Lookup(table), numbers(0, 1, 0, 1), "fr")
    assert (len(left.vectors), len(right.vectors)) == (3, 2)
    assert left.first.tolist() == [0, 1, 3] and left.of_line.tolist() == [0, 1, 0, 2]
    found = retrieval(left, right)
    assert found.there.tolist() == [True, True, False, False]
    assert found.back.tolist() == [True, True, False, False]


def by_hand(left: np.ndarray, right: np.ndarray, k: int) -> np.ndarray:
    """The best ratio margin (Artetxe and Schwenk, 2019) among each left row's k nearest, from all cosines."""
    cosines = unit(left) @ unit(right).T  # (N, M)
    means = np.sort(cosines, 1)[:, -k:].mean(1)[:, None] / 2 + np.sort(cosines, 0)[-k:].mean(0) / 2
    near = cosines >= np.sort(cosines, 1)[:, -k:][:, :1]
    return np.where(near, cosines / np.maximum(means, 0.01), -np.inf).argmax(1)


def test_margins_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    left = rng.normal(size=(80, 6))
    right = left + 0.9 * rng.normal(size=(80, 6))
    sides = [side(Lookup(table), numbers(*range(80)), lang) for table, lang in ((left, "en"), (right, "fr"))]
    found = retrieval(*sides, margin="ratio", k=4)
    assert (found.there == (by_hand(left, right, 4) == np.arange(80))).all()
    assert (found.back == (by_hand(right, left, 4) == np.arange(80))).all()
    assert (found.there != retrieval(*sides).there).any()  # or the test would show nothing
    assert found.mined is not None
    assert (found.mined.known, found.mined.correct <= found.mined.kept <= 80) == (80, True)


def test_mining_a_copy_keeps_nothing_wrong() -> None:
    table = np.random.default_rng(0).normal(size=(40, 8))
    sides = [side(Lookup(table), numbers(*range(40)), lang) for lang in ("en", "fr")]
    found = retrieval(*sides, margin="ratio")
    assert found.there.all() and found.back.all()
    assert found.mined.correct == found.mined.kept >= 38  # the lowest score of a half may miss the other's threshold


def test_intervals_are_wilsons() -> None:
    """The ends are where a test of that share would just reject: (p - share)^2 = z^2 share (1 - share) / n."""
    hits = np.arange(1000) < 865
    found = share(hits)
    assert found.value == 0.865
    for end in (found.low, found.high):
        assert (0.865 - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / 1000, rel=1e-5)
    assert share(np.ones(9, dtype=bool)).high == pytest.approx(1) and share(np.zeros(9, dtype=bool)).low == 0


def test_intervals_cover() -> None:
    """Exactly, over the binomial: the share of draws of 60 whose interval holds the truth."""
    intervals = [share(np.arange(60) < right) for right in range(61)]
    for truth in (0.5, 0.8, 0.9):
        held = [interval.low <= truth <= interval.high for interval in intervals]
        assert binom.pmf(np.arange(61), 60, truth)[held].sum() == pytest.approx(0.95, abs=0.025)


def test_bad_input_is_one_line() -> None:
    table = np.random.default_rng(0).normal(size=(4, 3))
    known = Lookup(table)
    known.langs = ("en", "fr")
    hole = table.copy()
    hole[2, 1] = np.nan
    sides = [side(Lookup(table), numbers(0, 1, 2), "en"), side(Lookup(table), numbers(0, 1), "fr")]
    for call, code, message in (
        (lambda: side(known, numbers(0), "de"), 2, "no language 'de'; it has en, fr"),
        (lambda: side(known, [], "en"), 4, "No sentences in en"),
        (lambda: side(Lookup(hole), numbers(0, 0, 1, 2), "fr"), 4, "line 4 in fr"),
        (lambda: side(Lookup(table[:, 0]), numbers(0, 1), "fr"), 4, r"shape \(2,\)"),
        (lambda: retrieval(*sides), 4, "3 and 2 sentences"),
        (lambda: retrieval(sides[0], side(Lookup(np.eye(4)), numbers(0, 1, 2), "fr")), 4, "3 and 4 units"),
        (lambda: retrieval(sides[0], sides[0], "ratios"), 2, "no margin 'ratios'"),
        (lambda: retrieval(sides[0], sides[0], "ratio", 0), 2, "k 0"),
    ):
        with pytest.raises(BgtError, match=message) as error:
            call()
        assert error.value.exit_code == code
        assert "\n" not in str(error.value)
