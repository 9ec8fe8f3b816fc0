"""Systems: their names, what an encoder lacks, distinct sentences, and vectors that are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation import systems as module
from bgt_core.evaluation.systems import System, systems
from bgt_core.vectors.compare import ComparesByCosine


class Letters(ComparesByCosine):
    """A sentence is how often each letter is in it; notes what it embeds."""

    fingerprint = ""

    def __init__(self, *latents: str, langs: Sequence[str] = ("en", "fr")):
        self.latents, self.langs = latents or ("semantic",), langs
        self.seen: list[tuple[list[str], str, str]] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        self.seen.append((list(sentences), lang, latent))
        return np.array([[text.count(letter) for letter in "abcd"] for text in sentences], dtype=np.float32)


class Given(Letters):
    """Gives these vectors, whatever the sentences."""

    def __init__(self, *vectors: np.ndarray):
        super().__init__()
        self.vectors = list(vectors)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        return self.vectors.pop(0)


def test_each_latent_is_a_system_and_has_its_name_if_there_are_several() -> None:
    both, one = Letters("semantic", "language"), Letters()
    rows = systems({"both": both, "one": one}, ["en"])
    assert [(row.name, row.latent) for row in rows] == [
        ("both semantic", "semantic"), ("both language", "language"), ("one", "semantic"),
    ]  # fmt: skip
    assert [row.encoder for row in rows] == [both, both, one]
    assert [row.name for row in systems({"both": both}, ["en"], "language")] == ["both language"]


def test_across_languages_language_latents_are_left_out() -> None:
    encoders = {"x": Letters("semantic", "language")}
    assert [row.latent for row in systems(encoders, ["en", "fr"], across=True)] == ["semantic"]
    first = {"x": Letters("language", "semantic")}
    assert [row.latent for row in systems(first, ["en", "fr"], across=True)] == ["semantic"]
    with pytest.raises(UsageError, match="x: language latents are not comparable across languages"):
        systems(encoders, ["en", "fr"], "language", across=True)


@pytest.mark.parametrize(
    ("encoders", "settings", "message"),
    [
        ({"x": Letters("a", "b"), "x b": Letters()}, {}, "Two systems are named 'x b'; rename one"),
        ({"tf-idf": Letters()}, {"reserved": ("tf-idf",)}, "Two systems are named 'tf-idf'"),
        ({"x": Letters()}, {"latent": "style"}, "latent style: x has semantic"),
        ({"x": Letters(langs=("fr",))}, {}, "lang en: x has fr"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_embedded(
    encoders: dict[str, Letters], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        systems(encoders, ["en"], **settings)
    assert not any(encoder.seen for encoder in encoders.values())


def test_an_encoder_without_languages_takes_any() -> None:
    assert len(systems({"x": Letters(langs=())}, ["xx"])) == 1


def test_each_distinct_sentence_is_embedded_once() -> None:
    encoder = Letters()
    vectors = System("x", encoder, "semantic").embed(["b", "a", "b", "cc"], "fr")
    assert encoder.seen == [(["b", "a", "cc"], "fr", "semantic")]
    assert vectors.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0]]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)],
)
def test_vectors_are_in_single_precision_or_finer(dtype: Any, expected: Any) -> None:
    assert System("x", Given(np.ones((2, 3), dtype))).embed(["a", "b"], "en").dtype == expected


LONG = "".join(chr(65 + place % 26) for place in range(70))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones(2), r"^x: float64 \(2,\); expected numbers, \(2, D\)"),
        (np.ones((3, 2)), r"float64 \(3, 2\)"),
        (np.array([["1"], ["2"]]), "<U1"),
        (np.array([[1.0], [np.nan]]), f"^x: row 2 contains NaN or infinity, for '{LONG[:60]}'"),
        (np.array([[np.inf], [np.nan]]), "row 1 contains NaN or infinity, for 'a'"),
    ],
)
def test_vectors_that_are_none_are_named(vectors: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        System("x", Given(vectors)).embed(["a", LONG], "en")


def test_an_encoder_s_own_error_gets_its_name() -> None:
    class Refuses(Letters):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
            raise UsageError("no sentence")

    with pytest.raises(UsageError, match=r"^x: no sentence$"):
        System("x", Refuses()).embed(["a"], "en")


def test_pairs_are_compared_by_the_encoder_s_own_similarity() -> None:
    class Opposed(Letters):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -super().similarity_pairwise(left, right)

    encoder = Opposed("language")
    similarity = System("x", encoder, "language").similarities(["a", "a"], ["ab", "a"], "en", "en")
    assert similarity.dtype == np.float64 and similarity.tolist() == pytest.approx([-np.sqrt(0.5), -1])
    assert encoder.seen == [(["a", "ab"], "en", "language")]
    System("x", encoder).similarities(["a"], ["b"], "en", "fr")
    assert encoder.seen[1:] == [(["a"], "en", "semantic"), (["b"], "fr", "semantic")]


def test_many_pairs_are_embedded_in_parts_to_the_same_similarities(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, right = Letters(), [f"{'a' * (row % 4)}b{'c' * (row % 5)}" for row in range(30)]
    whole = System("x", encoder).similarities(["ab"] * 30, right, "en", "en")
    monkeypatch.setattr(module, "PAIRS", 7)
    np.testing.assert_array_equal(System("x", encoder).similarities(["ab"] * 30, right, "en", "en"), whole)
    assert len(encoder.seen) == 1 + 5 and max(len(texts) for texts, _, _ in encoder.seen[1:]) <= 8


class Scored(Letters):
    """Gives these similarities, one for each pair."""

    def __init__(self, *similarities: float):
        super().__init__()
        self.similarities = similarities

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.array(self.similarities, np.float32)


def test_similarities_that_differ_by_rounding_alone_are_equal() -> None:
    near = Scored(0.5, 0.5000002, 1, 0.9999999, 0.9)
    assert System("x", near).similarities(["a"] * 5, ["b"] * 5, "en", "en").tolist() == [0.5, 0.5, 1, 1, 0.9]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_similarity_that_is_no_number_is_named_by_its_pair(value: float) -> None:
    with pytest.raises(DataError, match=f"^x: the similarity of 'b' and 'd' is {value}; expected a number"):
        System("x", Scored(0.5, value)).similarities(["a", "b"], ["c", "d"], "en", "en")


def test_two_languages_have_vectors_of_one_width() -> None:
    with pytest.raises(DataError, match="x: vectors of 3 and 2 units can't be compared"):
        System("x", Given(np.ones((1, 3)), np.ones((1, 2)))).similarities(["a"], ["b"], "en", "fr")
