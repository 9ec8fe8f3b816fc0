"""Systems have clear names, errors name the encoder, and pairs on which two encoders disagree are listed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bgt_core.contracts import SentenceEncoder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.systems import System, disagreement, systems, word_effects
from bgt_core.grammar import pairs
from bgt_core.vectors.arrays import cosine_similarity, cosines
from tests.close import assert_close


class Letters:
    """An encoder that counts letters, and that records the sentences it embeds."""

    fingerprint = ""
    similarity, similarity_pairwise = staticmethod(cosine_similarity), staticmethod(cosines)

    def __init__(self, *latents: str, langs: Sequence[str] = ("en", "fr")):
        self.latents, self.langs = latents or ("semantic",), langs
        self.seen: list[tuple[list[str], str, str]] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        self.seen.append((list(sentences), lang, latent))
        return np.array([[text.count(letter) for letter in "abcd"] for text in sentences], dtype=np.float32)


class Given(Letters):
    """An encoder that returns the given vectors, one array per call, and ignores the sentences."""

    def __init__(self, *vectors: np.ndarray):
        super().__init__()
        self.vectors = list(vectors)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
        return self.vectors.pop(0)


def test_each_latent_is_a_system_and_is_named_if_the_encoder_has_several() -> None:
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
    with pytest.raises(UsageError, match="x: language latents are not comparable across languages"):
        systems(encoders, ["en", "fr"], "language", across=True)


@pytest.mark.parametrize(
    ("encoders", "settings", "message"),
    [
        ({"x": Letters("a", "b"), "x b": Letters()}, {}, "Two systems are named 'x b'; rename one of the models"),
        ({"tf-idf": Letters()}, {"reserved": ("tf-idf",)}, "Two systems are named 'tf-idf'"),
        ({"x": Letters()}, {"latent": "style"}, "latent style: x has the latents semantic"),
        ({"x": Letters(langs=("fr",))}, {}, "lang en: x supports fr"),
    ],
)
def test_unusable_encoders_are_refused_before_anything_is_embedded(
    encoders: dict[str, Letters], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        systems(encoders, ["en"], **settings)
    assert not any(encoder.seen for encoder in encoders.values())


def test_each_distinct_sentence_is_embedded_once() -> None:
    encoder = Letters()
    vectors = System("x", encoder, "semantic").embed(["b", "a", "b", "cc"], "fr")
    assert encoder.seen == [(["b", "a", "cc"], "fr", "semantic")]
    assert vectors.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0]]


def test_errors_start_with_the_name_of_the_system() -> None:
    class Refuses(Letters):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "none") -> np.ndarray:
            raise UsageError("no sentence")

    with pytest.raises(UsageError, match=r"^x: no sentence$"):
        System("x", Refuses()).embed(["a"], "en")
    with pytest.raises(DataError, match=r"^x: float64 \(3, 2\); expected numbers, \(2, D\)"):
        System("x", Given(np.ones((3, 2)))).embed(["a", "b"], "en")
    with pytest.raises(DataError, match=f"^x: row 2 contains NaN or infinity, for '{'b' * 60}'"):
        System("x", Given(np.array([[1.0], [np.nan]]))).embed(["a", "b" * 70], "en")
    with pytest.raises(DataError, match="x: vectors of 3 and 2 units can't be compared"):
        System("x", Given(np.ones((1, 3)), np.ones((1, 2)))).similarities(["a"], ["b"], "en", "fr")


def test_pairs_are_compared_by_the_encoder_s_own_similarity() -> None:
    class Opposed(Letters):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -cosines(left, right)

    encoder = Opposed("language")
    similarity = System("x", encoder, "language").similarities(["a", "a"], ["ab", "a"], "en", "en")
    assert similarity.dtype == np.float64 and similarity.tolist() == pytest.approx([-np.sqrt(0.5), -1])
    assert encoder.seen == [(["a", "ab"], "en", "language")]
    System("x", encoder).similarities(["a"], ["b"], "en", "fr")
    assert encoder.seen[1:] == [(["a"], "en", "semantic"), (["b"], "fr", "semantic")]


def test_a_similarity_that_is_no_number_is_named_by_its_pair() -> None:
    class Infinite(Letters):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return np.array([0.5, np.inf])

    with pytest.raises(DataError, match=r"^x: the similarity of 'b' and 'd' is inf; expected a finite number"):
        System("x", Infinite()).similarities(["a", "b"], ["c", "d"], "en", "en")


LEFT, RIGHT = zip(*((pair.texts["en"], pair.texts["fr"]) for pair in pairs(40)), strict=True)
LANGS = ("en", "fr")


def counts(letters: str) -> ExternalEncoder:
    """Make an encoder that counts these letters; for French, it adds 1 to each count."""

    def embed(sentences: list[str], lang: str, latent: str) -> np.ndarray:
        return np.array([[text.lower().count(letter) + (lang == "fr") for letter in letters] for text in sentences]) + 1

    return ExternalEncoder(letters, embed)


ENCODERS: dict[str, SentenceEncoder] = {"vowels": counts("aeiou"), "consonants": counts("rstln")}


def cosine(encoder: SentenceEncoder, left: str, right: str) -> float:
    return float(cosines(encoder.embed([left], lang="en"), encoder.embed([right], lang="fr"))[0])


def test_pairs_are_ranked_by_the_gap_of_the_shares_of_pairs_below_them() -> None:
    left, right = [*LEFT, LEFT[0]], [*RIGHT, RIGHT[0]]  # the last pair repeats the first
    made = disagreement(ENCODERS, left, right, LANGS)
    for column, encoder in enumerate(ENCODERS.values()):
        similarities = [cosine(encoder, *pair) for pair in zip(left, right, strict=True)]
        assert_close(made.similarities[:, column], similarities, 2e-6)  # the list rounds to six decimals
        for row, one in enumerate(made.similarities[:, column]):
            others = np.delete(made.similarities[:, column], row)
            assert made.ranks[row, column] == pytest.approx(np.mean((others < one) + 0.5 * (others == one)))
    gaps = made.ranks[:, 1] - made.ranks[:, 0]
    assert (np.diff(np.abs(gaps)[made.order]) <= 0).all() and sorted(made.order) == list(range(len(left)))
    np.testing.assert_array_equal(made.gaps, gaps)


def test_the_effect_of_a_word_is_the_loss_of_similarity_without_it() -> None:
    text, right = "The cat sees us.", "Le chat nous voit !"
    for encoder in ENCODERS.values():
        made = word_effects(encoder, text, "en", encoder.embed([right], lang="fr")[0])
        assert made.shape == (5,)
        assert_close(made[1], cosine(encoder, text, right) - cosine(encoder, "The sees us.", right), scale=1)


def test_a_string_is_one_sentence_and_sides_are_pairs() -> None:
    with pytest.raises(UsageError, match="1 pairs: expected 2 or more"):
        disagreement(ENCODERS, "abc", "abd", LANGS)
    with pytest.raises(UsageError, match="left has 2 sentences, right 4; expected equal counts"):
        disagreement(ENCODERS, LEFT[:2], RIGHT[:4], ("en", "en"))
    with pytest.raises(UsageError, match="right row 2 of 2 is of type NoneType"):
        disagreement(ENCODERS, LEFT[:2], ["a", None], LANGS)
    with pytest.raises(UsageError, match=r"langs en: expected two languages, as in \('en', 'fr'\)"):
        disagreement(ENCODERS, LEFT, RIGHT, "en")
