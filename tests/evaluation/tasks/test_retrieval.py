"""Retrieval of translations finds the same hits as a plain loop over all similarities, even with ties and copies."""

from collections.abc import Sequence

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.retrieval import Retrieval, embed_distinct, hits_of, in_pool
from bgt_core.vectors import arrays
from bgt_core.vectors.arrays import unit

PAIR = ("en", "fr")
Sides = tuple[Sequence[str], Sequence[str]]


class Lookup(ExternalEncoder):
    """An encoder that embeds "3" as row 3 of a table, and so on. English uses the first table, French the last."""

    def __init__(self, *tables: np.ndarray):
        super().__init__("m", lambda texts, lang, _: tables[-1 if lang == "fr" else 0][list(map(int, texts))])


def numbers(*rows: int) -> list[str]:
    return [str(row) for row in rows]


def sides_of(encoder: Lookup, *texts: Sequence[str]) -> list:
    return [embed_distinct(System("m", encoder), text, lang) for text, lang in zip(texts, PAIR, strict=True)]


def found(encoder: Lookup, *texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hits in both directions by the encoder's own similarity."""
    return hits_of(*sides_of(encoder, *texts), encoder.similarity)


def retrieved(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hits in both directions. Row n of `left` and of `right` is the vector of line n."""
    return found(Lookup(left, right), *[numbers(*range(len(left)))] * 2)


def test_by_hand() -> None:
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.1]])
    answers = np.array([[9.0, 0.1], [0.1, 0.2], [0.2, 5.0], [-3.0, 0.0]])
    assert arrays.found(queries, answers).mean() == 0.5
    forward, backward = retrieved(queries, answers)
    assert forward.tolist() == backward.tolist() == [True, False, False, True]  # the nearest rows are 0, 2, 1, 3


def test_the_similarity_is_the_encoders_own() -> None:
    class Distant(Lookup):
        def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -np.linalg.norm(left[:, None] - right, axis=-1)

    table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])  # all vectors have the same direction
    forward, backward = found(Distant(table), *[numbers(0, 1, 2)] * 2)
    assert forward.all() and backward.all()
    assert arrays.found(table, table, similarity=Distant(table).similarity).all()
    np.testing.assert_allclose(arrays.found(table, table), 1 / 3)


def test_vectors_without_information_find_as_many_as_a_guess() -> None:
    assert arrays.found(np.zeros((4, 3)), np.ones((4, 3))).tolist() == [0.25] * 4
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(100) < 0.3, -1, 1)  # vectors on one line through 0 have cosines of 1 or -1
    one = [np.outer(signs * rng.uniform(0.1, 10, 100), rng.standard_normal(64)) for _ in PAIR]
    alike = [sum(signs == sign) for sign in signs]
    np.testing.assert_allclose(retrieved(one[0], one[0] * 1.7), [1 / np.array(alike)] * 2)
    assert arrays.found(one[0], one[0] * 1.7).mean() == pytest.approx(2 / 100)


def test_copies_are_embedded_once_and_a_hit_is_the_same_line() -> None:
    """English line 2 repeats line 0; French lines 2 and 3 repeat lines 0 and 1. Only lines 0 and 1 can be hits."""
    table = np.eye(5)
    texts = numbers(0, 1, 0, 2), numbers(0, 1, 0, 1)
    left, right = sides_of(Lookup(table), *texts)
    assert (len(left.vectors), len(right.vectors)) == (3, 2)
    assert left.first.tolist() == [0, 1, 3] and left.of_line.tolist() == [0, 1, 0, 2]
    for way in found(Lookup(table), *texts):
        assert way.tolist() == [True, True, False, False]


def measured(encoders: dict[str, Lookup], items: dict[str, Sides], **how: object) -> Result:
    return evaluate(Retrieval("en,fr", **how), encoders, items, resamples=100)


def test_each_file_search_and_way_is_a_score() -> None:
    rng = np.random.default_rng(0)
    left = rng.normal(size=(40, 6))
    encoders = {"own": Lookup(left, left + rng.normal(size=(40, 6))), "exact": Lookup(left)}
    lines = numbers(*range(30))
    result = measured(encoders, {"a": (lines, lines), "b": (lines[:9], [*lines[:8], lines[0]])})
    names = [(key.file, key.by, key.direction) for key in result.scores]
    ways = ["en to fr", "fr to en"]
    assert names == [(file, "cosine", way) for file in "ab" for way in ways]
    forward, _ = found(encoders["own"], lines, lines)
    low, high = wilson(int(forward.sum()), 30)
    cell = result.scores["a", "cosine", "en to fr", 30][0]
    assert cell[:3] == pytest.approx((100 * forward.mean(), 100 * low, 100 * high))
    assert result.table().columns == ["file", "by", "system", *ways]
    assert "b: 9 pairs; repeated sentences: 0 in en, 1 in fr" in result.about
    (gap, *_) = result.differences
    assert (gap.first, gap.second, gap.difference.value) == ("own", "exact", pytest.approx(100 * forward.mean() - 100))
    same = evaluate(Retrieval("en,en"), encoders["exact"], {"a": (lines, lines)}, resamples=100)
    assert [key.direction for key in same.scores] == ["en to en", "en to en, back"]


def test_unusable_languages_and_pairs_are_refused() -> None:
    table = np.random.default_rng(0).normal(size=(4, 3))
    known = Lookup(table)
    known.langs = PAIR
    three, two = numbers(0, 1, 2), numbers(0, 1)
    for langs, sides, code, message in (
        ("en,de", (two, two), 2, "lang de: m supports en"), ("en,fr", ((), ()), 4, "a: 0 sentences in en and 0 in fr"),
        ("en,fr", (three, two), 4, "a: 3 sentences in en and 2 in fr"),
        ("en,_", (two, two), 2, "langs en,_: expected two"),
    ):  # fmt: skip
        with pytest.raises(BgtError, match=message) as error:
            evaluate(Retrieval(langs), {"m": known}, {"a": sides})
        assert error.value.exit_code == code
    with pytest.raises(BgtError, match="m: vectors of 3 and 4 units"):
        measured({"m": Lookup(table, np.eye(4))}, {"a": (three, three)})


def test_in_the_pool_a_sentence_competes_with_those_of_its_own_language() -> None:
    """A loop compares each query with the sentences of both languages. Of equal answers, only the first is a hit."""
    rng = np.random.default_rng(3)
    tables = rng.standard_normal((9, 4)), rng.standard_normal((9, 4))
    left, right = numbers(0, 1, 2, 3, 4, 5, 6, 2), numbers(0, 1, 2, 3, 4, 5, 5, 7)
    encoder = Lookup(*tables)
    result = evaluate(Retrieval(langs="en,fr", pool=True), encoder, {"pairs": (left, right)}, resamples=100)
    for way, queries, answers, own, other in (
        ("en to fr", left, right, *tables),
        ("fr to en", right, left, *reversed(tables)),
    ):
        first = []
        for line, (query, answer) in enumerate(zip(queries, answers, strict=True)):
            vector = unit(own[int(query)])
            target = vector @ unit(other[int(answer)])
            rivals = [vector @ unit(other[int(each)]) for each in set(answers)]
            rivals += [vector @ unit(own[int(each)]) for each in set(queries) - {query}]
            first.append(max(rivals) == pytest.approx(target) and answer not in answers[:line])
        assert result.value(("pairs", "cosine in the pool", way)) == 100 * np.mean(first)


def test_copies_and_ties_count_in_the_pool_as_in_the_plain_search() -> None:
    table = np.eye(3)
    copies = {"copies": (numbers(*[0] * 40), numbers(*[1] * 40))}
    result = evaluate(Retrieval("en,fr", pool=True), Lookup(np.ones((2, 3))), copies, resamples=100)
    for by in ("cosine", "cosine in the pool"):
        assert result.value(("copies", by, "en to fr")) == 2.5  # one of 40 equal lines is a hit, 2.5 %
    left, right = sides_of(Lookup(table, np.ones((3, 3))), *[numbers(0, 1, 2)] * 2)
    np.testing.assert_allclose(in_pool(left, right), 1 / 3)  # the three translations are equally near
