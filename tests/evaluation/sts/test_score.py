"""Semantic textual similarity: known embedders, every aggregation, encoders that misbehave."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from bgt_core.errors import BgtError
from bgt_core.evaluation.sts import score as scoring
from bgt_core.evaluation.sts.score import AGGREGATES, ScoreKey, StsScores, StsSet, explain, sts
from bgt_core.vectors.compare import ComparesByCosine


class Angles(ComparesByCosine):
    """A sentence is an angle in degrees; lengths differ."""

    langs: tuple[str, ...] = ("en",)
    latents, fingerprint = ("semantic",), ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        turned = np.radians([float(sentence) for sentence in sentences])
        return (np.stack([np.cos(turned), np.sin(turned)], 1) * (1 + turned[:, None])).astype(np.float32)


class Constant(Angles):
    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return np.full((len(sentences), 3), 0.1, dtype=np.float32)


class Broken(Angles):
    """Gives what it is told, whatever the sentences."""

    langs = ()

    def __init__(self, *sides: np.ndarray):
        self.sides = iter(sides)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return next(self.sides)


def dataset(gold: list[float], year: str = "2012", name: str = "A", right_lang: str = "en") -> StsSet:
    """Pairs whose cosine is gold / 5."""
    turned = [str(math.degrees(math.acos(score / 5))) for score in gold]
    return StsSet(year, name, np.array(gold), ["0"] * len(gold), turned, "en", right_lang)


def random_scores() -> StsScores:
    """Three years, uneven sets, tied gold, and a benchmark that is no year."""
    rng = np.random.default_rng(0)
    sets, cosines = [], []
    for year, name, pairs in [
        ("2012", "A", 30),
        ("2012", "B", 90),
        ("2013", "SMT", 50),
        ("2014", "A", 7),
        ("2014", "B", 8),
        ("2014", "C", 200),
        ("stsb", "dev", 60),
    ]:
        gold = rng.integers(0, 26, pairs) / 5
        sets.append(StsSet(year, name, gold, ["a"] * pairs, ["b"] * pairs))
        cosines.append((gold / 5 + rng.normal(0, 0.5, pairs)).round(2))
    return StsScores(sets, cosines)


def test_a_perfect_embedder_scores_100_and_a_constant_one_0() -> None:
    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    assert sts(Angles(), [data]).average == pytest.approx(100, abs=1e-3)
    for score in sts(Constant(), [data]).table(AGGREGATES).values():
        assert score == 0
    opposite = StsSet("2012", "A", 5 - data.gold, data.left, data.right)
    assert sts(Angles(), [opposite]).average == pytest.approx(-100, abs=1e-3)


def test_every_aggregation_is_what_scipy_makes_of_the_pairs() -> None:
    scores = random_scores()
    pairs = list(zip(scores.sets, scores.cosines, strict=True))
    expected: dict[ScoreKey, float] = {}
    over = {"mean Pearson": [], "weighted Pearson": [], "concatenated Spearman": []}
    for data, cosine in pairs:
        size = len(cosine)
        expected[ScoreKey(data.year, data.name, "Pearson", size)] = 100 * pearsonr(cosine, data.gold).statistic
        expected[ScoreKey(data.year, data.name, "Spearman", size)] = 100 * spearmanr(cosine, data.gold).statistic
    for year in ("2012", "2013", "2014"):
        members = [(data, cosine) for data, cosine in pairs if data.year == year]
        each = [pearsonr(cosine, data.gold).statistic for data, cosine in members]
        sizes = [len(cosine) for _, cosine in members]
        joined = np.concatenate([cosine for _, cosine in members]), np.concatenate([data.gold for data, _ in members])
        over["mean Pearson"].append(100 * np.mean(each))
        over["weighted Pearson"].append(100 * np.dot(each, sizes) / sum(sizes))
        over["concatenated Spearman"].append(100 * spearmanr(*joined).statistic)
        for name, years in over.items():
            expected[ScoreKey(year, "all", name, sum(sizes))] = years[-1]
    for name, years in over.items():
        expected[ScoreKey("2012-2014", "average", name, 385)] = np.mean(years)
    table = scores.table(AGGREGATES)
    assert table.keys() == expected.keys()
    for row, score in table.items():
        assert score == pytest.approx(expected[row], abs=1e-9), row
    assert scores.average == pytest.approx(np.mean(over["mean Pearson"]), abs=1e-9)
    assert list(scores.years) == ["2012", "2013", "2014"]


def test_years_with_a_gap_are_not_called_a_span() -> None:
    scores = sts(Angles(), [dataset([0.0, 1, 2], "2012"), dataset([0.0, 1, 2], "2015")])
    assert [row.year for row in scores.table() if row.dataset == "average"] == ["2012, 2015"]


def test_benchmarks_that_are_no_year_have_no_average() -> None:
    scores = sts(Angles(), [dataset([0.0, 1, 2], "stsb", "dev")])
    assert [row.score for row in scores.table(AGGREGATES)] == ["Pearson", "Spearman"]
    with pytest.raises(BgtError, match="stsb dev"):
        _ = scores.average


def test_what_was_scored_is_said() -> None:
    sets = random_scores().sets
    assert "2013 with SMT" in explain(sets)
    assert "2013 without SMT" in explain([dataset([0.0, 1], "2013", "FNWN")])
    assert "SMT" not in explain([dataset([0.0, 1])])
    assert "MTEB" in explain(sets, ["concatenated"])
    assert "year" not in explain([dataset([0.0, 1], "stsb")])


@pytest.mark.parametrize(
    ("gold", "left", "right", "message"),
    [
        ([], [], [], "0 pairs; a correlation needs at least 2"),
        ([1.0], ["a"], ["b"], "1 pairs"),
        ([1.0, 2], ["a", "b"], ["c"], "2 gold scores, 2 left and 1 right sentences"),
        ([1.0, 2, 3], ["a", "b"], ["c", "d"], "3 gold scores"),
        ([2.0, 2, 2], list("abc"), list("def"), "every gold score is 2"),
        ([2.0, math.nan, 2], list("abc"), list("def"), "the gold score of pair 2 is nan"),
    ],
)
def test_a_set_without_a_correlation_is_refused(gold: list, left: list, right: list, message: str) -> None:
    with pytest.raises(BgtError, match=f"^2012 A: {message}"):
        StsSet("2012", "A", np.array(gold), left, right)


GOOD = np.eye(3, dtype=np.float32)
BROKEN = {
    "nan": (
        (GOOD, np.array([[1.0, 0], [np.nan, 0], [1, 1]])),
        "NaN or infinite value for the right sentence of pair 2, '60'; 1 of 3",
    ),
    "infinite": ((np.where(GOOD, np.inf, 0), GOOD), "NaN or infinite value for the left sentence of pair 1"),
    "widths": ((GOOD, GOOD[:, :2]), "left vectors have 3 units and right ones 2"),
    "one dimension": ((GOOD[0], GOOD), r"shape \(3,\) for 3 sentences in en; expected numbers, \(3, D\)"),
    "rows": ((GOOD, GOOD[:2]), r"shape \(2, 3\) for 3 sentences in fr"),
    "text": ((GOOD.astype(str), GOOD), "the encoder gave <U"),
}


@pytest.mark.parametrize(("sides", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_vectors_are_named_by_set_and_row(sides: tuple[np.ndarray, np.ndarray], message: str) -> None:
    data = StsSet("2012", "A", np.array([1.0, 2, 3]), ["0", "1", "2"], ["90", "60", "0"], "en", "fr")
    with pytest.raises(BgtError, match=f"^2012 A: .*{message}") as error:
        sts(Broken(*sides), [data])
    assert error.value.exit_code == 4


def test_what_a_model_does_not_have_is_said_before_it_embeds() -> None:
    silent = Broken()  # would fail if it were asked to embed
    silent.langs = ("en", "fr")
    with pytest.raises(BgtError, match=r"sts17 en-ar: the model has no language 'ar'; it has en, fr"):
        sts(silent, [dataset([0.0, 1]), dataset([0.0, 1], "sts17", "en-ar", "ar")])
    with pytest.raises(BgtError, match="no latent 'style'; choose from semantic"):
        sts(silent, [dataset([0.0, 1])], latent="style")
    silent.latents = ("semantic", "language")
    with pytest.raises(BgtError, match="the language latents of en and fr are two spaces"):
        sts(silent, [dataset([0.0, 1], "sts17", "en-fr", "fr")], latent="language")


def test_an_outside_encoder_takes_any_language() -> None:
    asked = []

    class ExternalEncoder(Angles):
        langs = ()

        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            asked.append(lang)
            return super().embed(sentences, lang=lang, latent=latent)

    sts(ExternalEncoder(), [dataset([0.0, 1, 2], "sts17", "en-ar", "ar")])
    assert asked == ["en", "ar"]


def test_the_similarity_is_the_encoders_own() -> None:
    class Opposed(Angles):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return -super().similarity_pairwise(left, right)

    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    assert sts(Opposed(), [data]).average == pytest.approx(-100, abs=1e-3)


class Batched(Angles):
    """Angles whose vectors have other last bits in each batch of three, as products of another shape give them."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        vectors = super().embed(sentences, lang=lang, latent=latent)
        noise = np.random.default_rng(len(sentences)).uniform(-2e-7, 2e-7, (len(sentences) // 3 + 1, 2)).repeat(3, 0)
        return (vectors * (1 + noise[: len(vectors)])).astype(np.float32)


def test_pairs_that_are_the_same_tie_whatever_batches_their_sentences_were_in() -> None:
    """Some come again, on either side; of some both sentences are the same: similarity 1, for each of them."""
    rng = np.random.default_rng(0)
    turned = [str(degrees) for degrees in rng.integers(0, 60, 40)]
    left, right = ["0"] * 40 + turned[:9] + turned[:30], [*turned, *["0"] * 9, *turned[:30]]
    gold = rng.integers(0, 6, len(left)).astype(float)
    scored = sts(Batched(), [StsSet("2012", "A", gold, left, right)])
    tied = np.cos(np.radians([abs(float(one) - float(other)) for one, other in zip(left, right, strict=True)]))
    expected = 100 * spearmanr(tied.round(9), gold)[0]
    assert scored.table({"concatenated"})[ScoreKey("2012", "A", "Spearman", 79)] == pytest.approx(expected, abs=1e-9)
    own = Batched()
    apart = own.similarity_pairwise(*(own.embed(side, lang="en") for side in (left, right)))
    assert abs(100 * spearmanr(apart, gold)[0] - expected) > 1e-3  # else there was nothing to tie


def test_a_large_set_is_embedded_in_parts_to_the_same_similarities(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset(np.linspace(0, 5, 30).tolist())
    sizes: list[int] = []

    class Counted(Angles):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            sizes.append(len(sentences))
            return super().embed(sentences, lang=lang, latent=latent)

    monkeypatch.setattr(scoring, "PAIRS", 7)
    (cosines,) = sts(Counted(), [data]).cosines
    assert np.allclose(cosines, data.gold / 5, atol=1e-6)
    assert max(sizes) <= 8 and len(sizes) == 5  # seven sentences on the right, one on the left


@pytest.mark.parametrize(
    ("aggregate", "kinds"),
    [
        ("mean", {"Pearson", "mean Pearson"}),
        ("weighted", {"Pearson", "weighted Pearson"}),
        ("concatenated", {"Spearman", "concatenated Spearman"}),
    ],
)
def test_each_aggregate_alone_has_its_own_scores(aggregate: str, kinds: set[str]) -> None:
    assert {key.score for key in random_scores().table([aggregate])} == kinds


@pytest.mark.parametrize(("years", "text"), [
    (["2012"], "2012"), (["2013", "2012"], "2012-2013"), (["2014", "2012", "stsb", "2013"], "2012-2014"),
    (["2012", "2014"], "2012, 2014"), (["stsb"], ""),
])  # fmt: skip
def test_years_in_a_row_are_a_span(years: list[str], text: str) -> None:
    assert scoring.span(years) == text


def test_the_latent_that_is_asked_for_is_the_one_embedded() -> None:
    class Two(Angles):
        latents = ("semantic", "language")

        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            vectors = super().embed(sentences, lang=lang)
            return vectors if latent == "semantic" else vectors * [1, -1]

        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return (left + right)[:, 1]

    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    (semantic,), (language,) = (sts(Two(), [data], latent=latent).cosines for latent in ("semantic", "language"))
    np.testing.assert_allclose(semantic, -language)
    assert semantic[0] > 0
    (unsaid,) = sts(Two(), [data]).cosines
    np.testing.assert_array_equal(unsaid, semantic)


@pytest.mark.parametrize(("spread", "alike"), [(3e-7, True), (3e-6, False)])
def test_similarities_that_differ_by_rounding_alone_are_all_the_first(spread: float, alike: bool) -> None:
    class Near(Angles):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            return 0.3 + np.linspace(0, spread, len(left))

    (given,) = sts(Near(), [dataset([0.0, 1.5, 2.0])]).cosines
    assert given.tolist() == ([0.3] * 3 if alike else [0.3, 0.3 + spread / 2, 0.3 + spread])


def test_vectors_are_in_single_precision_or_finer_and_not_copied() -> None:
    data, texts = dataset([0.0, 1.0]), ["a", "b"]
    for dtype, kept in (
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (int, np.float64),
    ):
        vectors = np.ones((2, 3), dtype)
        given = scoring.checked(vectors, data, "en", texts)
        assert given.dtype == kept and (given is vectors) == (dtype == kept)


def test_a_long_sentence_is_named_by_its_beginning() -> None:
    text = "".join(chr(65 + place % 26) for place in range(70))
    data = StsSet("2012", "A", np.array([0.0, 1.0]), ["a", text], ["b", "c"])
    with pytest.raises(BgtError, match=rf"left sentence of pair 2, '{text[:60]}'; 1 of 2 vectors"):
        scoring.checked(np.array([[1.0], [np.nan]]), data, "en", ["a", text])
