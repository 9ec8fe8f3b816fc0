"""Translation retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from bgt_core.evaluation.retrieval import Retrieval, embed_distinct, precision_at_1, retrieve, share
from scipy.stats import binom

from bgt_core.errors import BgtError
from bgt_core.mining import scores
from bgt_core.mining.margin import margin_pairs
from bgt_core.mining.neighbours import Rows, exact
from bgt_core.vectors import compare
from bgt_core.vectors.compare import ComparesByCosine, nearest, unit


class Lookup(ComparesByCosine):
    """Any language; a sentence is its number, and a row of a table."""

    langs: Sequence[str] = ()
    latents, fingerprint = ("semantic",), ""

    def __init__(self, *tables: np.ndarray):
        """The table of the left language, "en", and of the right one."""
        self.tables = tables

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return self.tables[-1 if lang == "fr" else 0][[int(sentence) for sentence in sentences]].astype(np.float32)


def numbers(*rows: int) -> list[str]:
    return [str(row) for row in rows]


def retrieved(left: np.ndarray, right: np.ndarray, **how: object) -> list[Retrieval]:
    """Of tables whose row n is the vector of line n."""
    lines = numbers(*range(len(left)))
    return retrieve(Lookup(left, right), lines, lines, langs=("en", "fr"), **how)


def test_by_hand() -> None:
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.1]])
    answers = np.array([[9.0, 0.1], [0.1, 0.2], [0.2, 5.0], [-3.0, 0.0]])  # nearest: 0, 2, 1, 3
    assert precision_at_1(queries, answers) == 0.5
    (result,) = retrieved(queries, answers)
    assert result.forward.tolist() == [True, False, False, True]
    assert result.backward.tolist() == [True, False, False, True]  # from the right, nearest: 0, 2, 1, 3
    assert (result.by, result.langs, result.mined) == ("cosine", ("en", "fr"), None)


def test_the_similarity_is_the_encoders_own() -> None:
    class Distant(Lookup):
        def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -np.linalg.norm(left[:, None] - right, axis=-1)

    table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])  # all of one direction
    (by_distance,) = retrieve(Distant(table), *[numbers(0, 1, 2)] * 2, langs=("en", "fr"))
    assert by_distance.forward.all() and by_distance.backward.all()
    assert precision_at_1(table, table, Distant(table).similarity) == 1 and precision_at_1(table, table) == 1 / 3
    assert retrieved(table, table)[0].forward.tolist() == [True, False, False]


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
    monkeypatch.setattr(compare, "BLOCK", 7)
    assert (nearest(queries, answers) == whole).all()


def test_copies_are_embedded_once_and_a_hit_is_the_same_line() -> None:
    """Lines 0 and 2 are one translation; lines 1 and 3 have one French sentence for two English ones."""
    table = np.eye(5)
    texts = numbers(0, 1, 0, 2), numbers(0, 1, 0, 1)
    left, right = (embed_distinct(Lookup(table), text, "en") for text in texts)
    assert (len(left.vectors), len(right.vectors)) == (3, 2)
    assert left.first.tolist() == [0, 1, 3] and left.of_line.tolist() == [0, 1, 0, 2]
    (result,) = retrieve(Lookup(table), *texts, langs=("en", "fr"))
    assert result.forward.tolist() == [True, True, False, False]
    assert result.backward.tolist() == [True, True, False, False]


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
    by_cosine, by_margin = retrieved(left, right, margin="ratio", k=4)
    assert (by_margin.forward == (by_hand(left, right, 4) == np.arange(80))).all()
    assert (by_margin.backward == (by_hand(right, left, 4) == np.arange(80))).all()
    assert (by_margin.forward != by_cosine.forward).any()  # or the test would show nothing
    assert by_margin.mined is not None
    assert (by_margin.mined.known, by_margin.mined.correct <= by_margin.mined.kept <= 80) == (80, True)


@pytest.mark.parametrize(("margin", "k"), [("ratio", 2), ("ratio", 7), ("distance", 3)])
def test_a_margin_is_over_as_many_neighbours_as_said(margin: str, k: int) -> None:
    left = np.random.default_rng(1).normal(size=(60, 5))
    right = left + np.random.default_rng(2).normal(size=(60, 5))
    _, result = retrieved(left, right, margin=margin, k=k)
    cosines = unit(left) @ unit(right).T
    means = np.sort(cosines, 1)[:, -k:].mean(1)[:, None] / 2 + np.sort(cosines, 0)[-k:].mean(0) / 2
    scored = cosines / np.maximum(means, 0.01) if margin == "ratio" else cosines - means
    near = cosines >= np.sort(cosines, 1)[:, -k:][:, :1]
    assert (result.forward == (np.where(near, scored, -np.inf).argmax(1) == np.arange(60))).all()
    other = "distance" if margin == "ratio" else "ratio"
    assert result.mined != retrieved(left, right, margin=other, k=k)[1].mined  # or the test would show nothing
    assert (result.by, result.langs) == (margin, ("en", "fr"))


def test_four_neighbours_unless_said() -> None:
    left = np.random.default_rng(3).normal(size=(60, 5))
    right = left + np.random.default_rng(4).normal(size=(60, 5))
    (_, given), *others = (retrieved(left, right, margin="ratio", **how) for how in ({}, {"k": 4}, {"k": 5}))
    assert (given.forward == others[0][1].forward).all() and (given.forward != others[1][1].forward).any()


@pytest.mark.parametrize("seed", [19, 40, 155])  # where halves by the right sentence, or others, give other counts
def test_mined_pairs_are_counted_at_the_threshold_of_the_other_half(seed: int) -> None:
    """Halves by the number of the left sentence; many sentences have one translation."""
    rng = np.random.default_rng(seed)
    lines = rng.integers(0, 25, 40)
    table = rng.normal(size=(25, 4))
    encoder = Lookup(table, table + 0.7 * rng.normal(size=(25, 4)))
    texts = numbers(*lines), numbers(*np.where(lines < 14, 0, lines))
    _, result = retrieve(encoder, *texts, langs=("en", "fr"), margin="ratio")
    left, right = (embed_distinct(encoder, text, lang) for text, lang in zip(texts, ("en", "fr"), strict=True))
    rows = [Rows(side.vectors, np.arange(len(side.vectors))) for side in (left, right)]
    pairs = margin_pairs(*rows, exact(*rows), k=4, margin="ratio", retrieval="max")
    known = set(zip(left.of_line.tolist(), right.of_line.tolist(), strict=True))
    correct = np.array([pair in known for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)])
    sizes = [sum(one % 2 == half for one, _ in known) for half in (0, 1)]
    expected, _ = scores.held_out(pairs.scores, correct, pairs.left % 2, (sizes[0], sizes[1]))
    assert result.mined == expected and expected.known == len(known)


def test_mining_a_copy_keeps_nothing_wrong() -> None:
    table = np.random.default_rng(0).normal(size=(40, 8))
    _, result = retrieved(table, table, margin="ratio")
    assert result.forward.all() and result.backward.all()
    assert result.mined.correct == result.mined.kept >= 38  # the lowest score of a half may miss the other's threshold


def test_intervals_are_wilsons() -> None:
    """The ends are where a test of that share would just reject: (p - share)^2 = z^2 share (1 - share) / n."""
    hits = np.arange(1000) < 865
    fraction = share(hits)
    assert fraction.value == 0.865
    for end in (fraction.low, fraction.high):
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
    three, two = numbers(0, 1, 2), numbers(0, 1)
    pair = {"langs": ("en", "fr")}
    for call, code, message in (
        (lambda: embed_distinct(known, numbers(0), "de"), 2, "no language 'de'; it has en, fr"),
        (lambda: embed_distinct(known, [], "en"), 4, "No sentences in en"),
        (lambda: embed_distinct(Lookup(hole), numbers(0, 0, 1, 2), "fr"), 4, "line 4 in fr"),
        (lambda: embed_distinct(Lookup(table[:, 0]), two, "fr"), 4, r"shape \(2,\)"),
        (lambda: retrieve(known, three, two, **pair), 4, "3 and 2 sentences"),
        (lambda: retrieve(Lookup(table, np.eye(4)), three, three, **pair), 4, "3 and 4 units"),
        (lambda: retrieve(known, three, three, **pair, margin="ratios"), 2, "no margin 'ratios'"),
        (lambda: retrieve(known, three, three, **pair, margin="ratio", k=0), 2, "`k` 0"),
        (lambda: retrieve(known, three, three, langs=["en"]), 2, "`langs` en: expected two"),
    ):
        with pytest.raises(BgtError, match=message) as error:
            call()
        assert error.value.exit_code == code
        assert "\n" not in str(error.value)
