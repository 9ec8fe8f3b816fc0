"""STS scores are right for known similarities, averages agree with SciPy's, and Hard STS selects the right pairs."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import nltk
import numpy as np
import pytest
from pyarrow import parquet
from scipy.stats import pearsonr, spearmanr

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import pearson, resample
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks import sts as scoring
from bgt_core.evaluation.tasks.sts import ScoreKey, Sts, extreme, hard_splits, negated, pooled, similarities_of, swer
from bgt_core.vectors.arrays import cosines


def angles(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed sentences that are numbers: each number is the angle of its vector in degrees."""
    turned = np.radians([float(sentence) for sentence in sentences])
    return np.stack([np.cos(turned), np.sin(turned)], 1) * (1 + turned[:, None])


def noisy(noise: float) -> ExternalEncoder:
    """Make an encoder whose similarities have noise of a standard deviation. A pair always gets the same noise."""

    def similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        exact = cosines(left, right).astype(float)
        return exact + [noise * np.random.default_rng([0, round(each * 1e6)]).normal() for each in exact]

    return ExternalEncoder("noisy", angles, ("en",), similarity_pairwise=similarity)


ANGLES = ExternalEncoder("angles", angles, ("en",))


def dataset(gold: Sequence[float], year: str = "2012", name: str = "A") -> StsSet:
    """Make an STS data set of pairs for which the cosine of `ANGLES` is gold / 5."""
    turned = [str(math.degrees(math.acos(score / 5))) for score in gold]
    return StsSet(year, name, np.array(gold), ["0"] * len(gold), turned)


RNG = np.random.default_rng(0)
SETS = [
    dataset(RNG.uniform(0, 5, size).round(6).tolist(), year, name)
    for year, name, size in (("2012", "A", 60), ("2012", "B", 30), ("2013", "A", 40))
]


def measured(encoders: Any, sets: Sequence[StsSet], *, resamples: int = 100, seed: int = 0, **how: Any) -> Result:
    return evaluate(Sts(**how), encoders, sets, resamples=resamples, seed=seed)


def test_a_perfect_embedder_scores_100_and_a_constant_one_0() -> None:
    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    assert measured(ANGLES, [data]).value(("2012", "average", "mean Pearson")) == pytest.approx(100, rel=1e-5)
    constant = ExternalEncoder("constant", lambda texts, *_: np.full((len(texts), 3), 0.1))
    result = measured(constant, [data], aggregate="all")
    assert [cells[0].value for cells in result.scores.values()] == [0] * len(result.scores)
    opposite = StsSet("2012", "A", 5 - data.gold, data.left, data.right)
    assert measured(ANGLES, [opposite]).value(("2012", "average", "mean Pearson")) == pytest.approx(-100, rel=1e-5)


def test_the_resamples_of_a_set_depend_on_its_name_and_the_seed_only() -> None:
    key = ScoreKey("2012", "B", "Pearson", 30)
    (cell,) = measured(noisy(0.3), SETS, resamples=230, seed=6).scores[key]
    cosine = similarities_of(System("m", noisy(0.3)), SETS[1])
    weights = resample(np.random.default_rng([6, crc32(b"2012 B")]), 30, 230)
    draws = 100 * pearson(weights, cosine[None], SETS[1].gold)[:, 0]
    assert cell.value == pytest.approx(100 * pearsonr(cosine, SETS[1].gold).statistic)
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    (alone,) = measured(noisy(0.3), SETS[1:2], resamples=230, seed=6).scores[key]
    assert alone == cell  # other data sets do not change this score


def test_each_pair_is_written_with_its_similarities(tmp_path: Path) -> None:
    kept = tmp_path / "items.parquet"
    measured({"m": noisy(0.3), "n": noisy(0.5)}, SETS, items=kept)
    rows = parquet.read_table(kept).to_pylist()
    assert [row["gold"] for row in rows] == [gold for data in SETS for gold in data.gold]
    assert list(rows[0]) == ["year", "dataset", "left_lang", "right_lang", "gold", "left", "right", "m", "n"]
    expected = [similarities_of(System("n", noisy(0.5)), data) for data in SETS]
    assert [row["n"] for row in rows] == np.concatenate(expected).tolist()


def test_hard_sts_is_selected_from_the_years() -> None:
    words = "the dog is not in a red car".split()
    rows = [(n % 11 / 2, " ".join(words[: n % 7 + 1]), " ".join(words[n % 5 :])) for n in range(385)]
    lengths = ExternalEncoder("lengths", lambda texts, *_: [[len(text), text.count(" ") + 1] for text in texts])
    result = measured(lengths, [labelled(rows)], hard=True)
    names = {f"{key.year} {key.dataset}" for key in result.scores}
    assert {"hard Hard+", "hard Hard-", "hard negation", "2012 A", "2012 average"} <= names
    assert any("Hard STS: 385 different pairs (the paper has 13,023" in line for line in result.warnings)


def test_every_aggregation_equals_scipys_correlations() -> None:
    """The data are STS Benchmark and three years with sets of different sizes and tied gold scores."""
    rng = np.random.default_rng(0)
    pairs = []
    sizes = {"2012 A": 30, "2012 B": 90, "2013 SMT": 50, "2014 A": 7, "2014 B": 8, "2014 C": 200, "stsb dev": 60}
    for (year, name), size in ((set_name.split(), size) for set_name, size in sizes.items()):
        gold = rng.integers(0, 26, size) / 5
        pairs.append(
            (StsSet(year, name, gold, ["a"] * size, ["b"] * size), (gold / 5 + rng.normal(0, 0.5, size)).round(2))
        )
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
    ones = [np.ones((1, len(data.gold))) for data, _ in pairs]
    table = scoring.scores([data for data, _ in pairs], [cosine[None] for _, cosine in pairs], ones, scoring.AGGREGATES)
    assert table.keys() == expected.keys()
    for row, score in table.items():
        assert score[0, 0] == pytest.approx(expected[row], rel=1e-9), row


def labelled(rows: list[tuple[float, str, str]], year: str = "2012", name: str = "A") -> StsSet:
    gold, left, right = zip(*rows, strict=True)
    return StsSet(year, name, np.array(gold), list(left), list(right))


def test_edits_are_those_of_nltk() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = (tuple(rng.choice(list("xyz"), rng.integers(0, 8))) for _ in range(2))
        assert scoring.edits(a, b) == scoring.edits(b, a) == nltk.edit_distance(a, b)


@pytest.mark.parametrize(("left", "right", "rate"), [
    ("A dog runs.", "a DOG runs.", 0.0), ("a b c", "a x c", 1 / 3), ("", "a b", (2 / 1 + 2 / 2) / 2), ("", "", 0.0),
    ("a b", "a b c d", (2 / 2 + 2 / 4) / 2),  # the mean of 2/2 (the reference is on the left) and 2/4 (on the right)
])  # fmt: skip
def test_rates_by_hand(left: str, right: str, rate: float) -> None:
    assert swer([left], [right])[0] == swer([right], [left])[0] == pytest.approx(rate)


def test_extremes_are_the_share_and_all_that_tie_with_its_last_rate() -> None:
    rates = np.array([0.1, 0.2, 0.2, 0.2, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9])
    assert extreme(rates, "bottom", 0.1).nonzero()[0].tolist() == [0]
    assert extreme(rates, "bottom", 0.2).nonzero()[0].tolist() == [0, 1, 2, 3]  # three rates are equal
    assert extreme(rates, "top", 0.2).nonzero()[0].tolist() == [8, 9]
    assert extreme(rates, "top", 0.21).sum() == 3


def test_negation_is_a_word_of_exactly_one_sentence() -> None:
    sentences = ["It is NOT so.", "I don't know.", "I don\u2019t know.", "nothing", "I cannot", "a knot", "it 'tis"]
    assert negated(sentences).tolist() == [True, True, True, False, False, False, False]
    rows = [(1.0, "It's not a good idea.", "It's a good idea."), (2.0, "It isn't.", "It's not."), (3.0, "a", "b")]
    rows += [(4.0, "He will.", "He won't.")]
    pool = pooled([labelled(rows)])
    assert (negated(pool.left) != negated(pool.right)).tolist() == [True, False, False, True]


def test_the_pool_keeps_a_pair_once_for_each_score() -> None:
    first = labelled([(1.0, "a", "b"), (1.0, "a", "b"), (2.0, "a", "b"), (1.0, "b", "a")])
    second = labelled([(1.0, "a", "b"), (1.0, "A", "b"), (3.0, "c", "d")], "2013", "B")
    pool = pooled([first, second])
    kept = [(1.0, "a", "b"), (2.0, "a", "b"), (1.0, "b", "a"), (1.0, "A", "b"), (3.0, "c", "d")]
    assert list(zip(pool.gold, pool.left, pool.right, strict=True)) == kept
    assert (pool.year, pool.name) == ("hard", "all")


@pytest.fixture(scope="module")
def splits() -> dict[str, StsSet]:
    """The Hard STS subsets of 100 pairs of sentences. In pair n, n of 100 words differ: its word error rate is n %."""
    rows = []
    for n in range(100):
        left = [f"w{place}" for place in range(99)] + [f"pair{n}"]
        right = [f"x{place}" for place in range(n)] + left[n:]
        rows.append((n % 11 / 2, " ".join(left), " ".join(right)))
    rows[50] = (0.0, rows[50][1].replace("w60", "not"), rows[50][2])
    rows[51] = (1.0, rows[51][1].replace("w60", "not"), rows[51][2])
    return {split.name: split for split in hard_splits([labelled(rows[:40]), labelled(rows[40:], "2013", "B")])}


@pytest.mark.parametrize(("name", "rates", "low", "high"), [
    ("Hard+", range(80, 100), 4, 5), ("Hard-", range(20), 0, 1), ("bottom 20% SWER, gold 0-2", range(20), 0, 2),
    ("bottom 10% SWER, gold 0-1", range(10), 0, 1), ("top 20% SWER, gold 3-5", range(80, 100), 3, 5),
    ("top 10% SWER, gold 4-5", range(90, 100), 4, 5), ("easy: top 20% SWER, gold 0-2", range(80, 100), 0, 2),
    ("easy: bottom 20% SWER, gold 3-5", range(20), 3, 5),
])  # fmt: skip
def test_splits_have_the_pairs_that_their_names_describe(
    splits: dict[str, StsSet], name: str, rates: range, low: float, high: float
) -> None:
    expected = [n for n in rates if low <= n % 11 / 2 <= high]
    split = splits[name]
    assert [int(left.split("pair")[1]) for left in split.left] == expected
    assert split.gold.tolist() == [n % 11 / 2 for n in expected]
    assert swer(split.left, split.right) == pytest.approx([n / 100 for n in expected])


@pytest.mark.parametrize("sets", [[], [labelled([(1.0, "a", "b"), (2.0, "a", "c")])]])
def test_too_few_pairs_for_hard_sts_are_refused(sets: list[StsSet]) -> None:
    with pytest.raises(DataError, match="Hard STS"):
        hard_splits(sets)
