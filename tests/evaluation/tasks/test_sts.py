"""Semantic textual similarity of known encoders: scores of sets, years and all, resamples, kept pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy import stats

from bgt_core.errors import BgtError
from bgt_core.evaluation.bootstrap import pearson, resample
from bgt_core.evaluation.result import Result
from bgt_core.evaluation.sts.score import AGGREGATES, ScoreKey, StsSet, explain, scores
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts, average, parse_sets, score_sets
from bgt_core.vectors.compare import ComparesByCosine


class Angles(ComparesByCosine):
    """A sentence is an angle in degrees; lengths differ."""

    langs: tuple[str, ...] = ("en",)
    latents: tuple[str, ...] = ("semantic",)
    fingerprint = ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        turned = np.radians([float(sentence) for sentence in sentences])
        return (np.stack([np.cos(turned), np.sin(turned)], 1) * (1 + turned[:, None])).astype(np.float32)


class Noisy(Angles):
    """Similarities with noise of this deviation, always the same of one pair."""

    def __init__(self, noise: float, seed: int = 0):
        self.noise, self.seed = noise, seed

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        exact = super().similarity_pairwise(left, right).astype(float)
        return exact + [self.noise * np.random.default_rng([self.seed, round(each * 1e6)]).normal() for each in exact]


class Constant(Angles):
    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return np.full((len(sentences), 3), 0.1, dtype=np.float32)


def dataset(gold: Sequence[float], year: str = "2012", name: str = "A", right_lang: str = "en") -> StsSet:
    """Pairs whose cosine is gold / 5."""
    turned = [str(math.degrees(math.acos(score / 5))) for score in gold]
    return StsSet(year, name, np.array(gold), ["0"] * len(gold), turned, "en", right_lang)


def sets_of(**sizes: int) -> list[StsSet]:
    """Random sets: y2012_A=30."""
    rng = np.random.default_rng(0)
    return [dataset(rng.uniform(0, 5, size).round(6).tolist(), *name[1:].split("_")) for name, size in sizes.items()]


SETS = sets_of(y2012_A=60, y2012_B=30, y2013_A=40)


def measured(encoders: Any, sets: Sequence[StsSet], *, resamples: int = 100, seed: int = 0, **how: Any) -> Result:
    return evaluate(Sts(**how), encoders, sets, resamples=resamples, seed=seed)


def test_a_perfect_embedder_scores_100_and_a_constant_one_0() -> None:
    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    assert average(measured(Angles(), [data])) == pytest.approx(100, rel=1e-5)
    result = measured(Constant(), [data], aggregate="all")
    assert [cells[0].value for cells in result.scores.values()] == [0] * len(result.scores)
    opposite = StsSet("2012", "A", 5 - data.gold, data.left, data.right)
    assert average(measured(Angles(), [opposite])) == pytest.approx(-100, rel=1e-5)


def test_scores_are_those_of_each_system_alone_and_lie_in_their_intervals() -> None:
    encoders = {"a": Noisy(0.2), "b": Noisy(0.4, 1)}
    result = measured(encoders, SETS, aggregate="all", resamples=200)
    for place, (name, encoder) in enumerate(encoders.items()):
        cosines = score_sets(System(name, encoder), SETS).cosines
        ones = [np.ones((1, len(data.gold))) for data in SETS]
        alone = scores(SETS, [each[None] for each in cosines], ones, list(AGGREGATES))
        assert list(result.scores) == list(alone)
        for key, cells in result.scores.items():
            assert cells[place].value == pytest.approx(alone[key][0, 0], rel=1e-9)
            assert cells[place].low < cells[place].value < cells[place].high
    assert average(result, "a") == result.value(("2012-2013", "average", "mean Pearson"), "a")


def test_an_average_is_surer_than_its_parts() -> None:
    width = {
        key: cells[0].high - cells[0].low for key, cells in measured(Noisy(0.3), SETS, resamples=500).scores.items()
    }
    assert width["2012-2013", "average", "mean Pearson", 130] < width["2012", "A", "Pearson", 60]


def test_resamples_are_of_the_seed_and_the_name_of_the_set() -> None:
    key = ScoreKey("2012", "B", "Pearson", 30)
    (cell,) = measured(Noisy(0.3), SETS, resamples=230, seed=6).scores[key]
    cosine = score_sets(System("m", Noisy(0.3)), SETS).cosines[1]
    weights = resample(np.random.default_rng([6, crc32(b"2012 B")]), 30, 230)
    draws = 100 * pearson(weights, cosine[None], SETS[1].gold)[:, 0]
    assert cell.value == pytest.approx(100 * stats.pearsonr(cosine, SETS[1].gold)[0])
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    (alone,) = measured(Noisy(0.3), SETS[1:2], resamples=230, seed=6).scores[key]
    assert alone == cell  # whatever is scored beside it


def test_benchmarks_that_are_no_year_have_no_average() -> None:
    result = measured(Angles(), [dataset([0.0, 1, 2], "stsb", "dev")], aggregate="all")
    assert [key.score for key in result.scores] == ["Pearson", "Spearman"]
    with pytest.raises(BgtError, match="0 scores"):
        average(result)


def test_across_languages_the_language_latent_is_left_out() -> None:
    class Two(Angles):
        latents = ("semantic", "language")
        langs = ("en", "fr")

    data = dataset([0.0, 1, 2], "sts17", "en-fr", "fr")
    assert measured({"m": Two()}, [data]).systems == ["m semantic"]
    assert measured({"m": Two()}, SETS).systems == ["m semantic", "m language"]
    with pytest.raises(BgtError, match="not comparable"):
        measured({"m": Two()}, [data], latent="language")


def test_vectors_that_are_none_are_named_with_their_set() -> None:
    class Broken(Angles):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.full((len(sentences), 2), np.nan)

    with pytest.raises(BgtError, match=r"^2012 A: m: row 1 contains NaN or infinity, for '0'"):
        measured({"m": Broken()}, SETS)


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
    result = measured(Batched(), [StsSet("2012", "A", gold, left, right)], aggregate="concatenated")
    tied = np.cos(np.radians([abs(float(one) - float(other)) for one, other in zip(left, right, strict=True)]))
    expected = 100 * stats.spearmanr(tied.round(9), gold)[0]
    assert result.value(("2012", "A", "Spearman")) == pytest.approx(expected, rel=1e-9)
    own = Batched()
    apart = own.similarity_pairwise(*(own.embed(side, lang="en") for side in (left, right)))
    assert abs(100 * stats.spearmanr(apart, gold)[0] - expected) > 1e-3  # else there was nothing to tie


def test_kept_pairs_are_data_for_any_encoder(tmp_path: Path) -> None:
    whole = measured({"m": Noisy(0.3), "n": Noisy(0.5)}, SETS)
    kept = tmp_path / "items.parquet"
    assert whole.write_items
    whole.write_items(kept)
    again = evaluate("sts", {"m": Noisy(0.3), "n": Noisy(0.5)}, kept, resamples=100)
    assert again.scores == whole.scores


def test_hard_sts_is_cut_from_the_years() -> None:
    words = "the dog is not in a red car".split()
    rows = [(n % 11 / 2, " ".join(words[: n % 7 + 1]), " ".join(words[n % 5 :])) for n in range(385)]
    gold, left, right = (list(column) for column in zip(*rows, strict=True))

    class Lengths(Angles):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.array([[len(text), text.count(" ") + 1] for text in sentences], dtype=np.float32)

    result = measured(Lengths(), [StsSet("2012", "A", np.array(gold), left, right)], hard=True)
    names = {f"{key.year} {key.dataset}" for key in result.scores}
    assert {"hard Hard+", "hard Hard-", "hard negation", "2012 A", "2012 average"} <= names
    assert any("Hard STS: 385 different pairs (the paper has 13,023" in line for line in result.warnings)


def test_sets_that_are_not_as_published_are_warned_of_or_refused() -> None:
    result = measured(Angles(), SETS)
    assert any("2012 is without MSRpar" in line for line in result.warnings)
    assert result.about.startswith(explain(SETS, ["mean"]))
    with pytest.raises(BgtError, match="2012 is without MSRpar"):
        measured(Angles(), SETS, strict=True)


@pytest.mark.parametrize(("text", "names"), [
    ("2012-2014,sick", ["2012", "2013", "2014", "sick"]), ("stsb-dev-fr", ["stsb-dev-fr"]), ("2016-2016", ["2016"]),
])  # fmt: skip
def test_years_are_written_as_a_span(text: str, names: list[str]) -> None:
    assert parse_sets(text) == names


def test_senseless_settings_are_refused() -> None:
    with pytest.raises(BgtError, match="sets 2014-2012: years go from the first to the last"):
        parse_sets("2014-2012")
    with pytest.raises(BgtError, match="aggregate 'median': choose from mean, weighted, concatenated, all") as error:
        measured(Angles(), SETS, aggregate="median")
    assert error.value.exit_code == 2
