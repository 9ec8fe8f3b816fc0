"""STS systems side by side: intervals, ties, and per-pair scores kept and read again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from bgt_core.evaluation.sts.compare import bootstrap_scores, compare, same_pairs
from pyarrow import parquet
from scipy import stats

from bgt_core.errors import BgtError
from bgt_core.evaluation.bootstrap import pearson, resample
from bgt_core.evaluation.sts.parquet import read_scores, write_scores
from bgt_core.evaluation.sts.score import ScoreKey, StsScores, StsSet, explain

SIZES = {("2012", "A"): 200, ("2012", "B"): 100, ("2013", "A"): 150, ("sts17", "en-ar"): 80}


def systems(*noises: float, seed: int = 0) -> dict[str, StsScores]:
    """Systems that see gold through noise of these deviations, "s0" and on; they share half of its variance."""
    rng = np.random.default_rng(seed)
    sets, shared = [], []
    for (year, name), pairs in SIZES.items():
        text = [[f"{side} {number}" for number in range(pairs)] for side in ("left", "right")]
        sets.append(StsSet(year, name, rng.integers(0, 26, pairs) / 5, *text, "en", name[-2:] if "-" in name else "en"))
        shared.append(rng.normal(size=pairs))
    named = {}
    for number, noise in enumerate(noises):
        errors = [(one + rng.normal(size=len(one))) * noise / np.sqrt(2) for one in shared]
        named[f"s{number}"] = StsScores(sets, [data.gold / 5 + e for data, e in zip(sets, errors, strict=True)])
    return named


def test_scores_are_those_of_each_system_alone_and_lie_in_their_intervals() -> None:
    given = systems(0.2, 0.4)
    table = compare(given, ["mean", "concatenated"], resamples=200)
    for place, (name, alone) in enumerate(given.items()):
        assert table.systems[place] == name
        expected = alone.table(["mean", "concatenated"])
        assert list(table.scores) == list(expected)
        for row, cells in table.scores.items():
            assert cells[place].value == pytest.approx(expected[row], abs=1e-9)
            assert cells[place].low < cells[place].value < cells[place].high


def test_an_interval_of_one_set_is_about_fishers() -> None:
    given = systems(0.3)
    (cell,) = compare(given, resamples=4_000).scores[ScoreKey("2012", "A", "Pearson", 200)]
    z, half = np.arctanh(cell.value / 100), 1.96 / np.sqrt(197)
    assert [cell.low, cell.high] == pytest.approx([100 * np.tanh(z - half), 100 * np.tanh(z + half)], abs=1.5)


def test_an_average_is_surer_than_its_parts() -> None:
    scores = compare(systems(0.3), resamples=500).scores
    width = {row: cells[0].high - cells[0].low for row, cells in scores.items()}
    average, part = ScoreKey("2012-2013", "average", "mean Pearson", 450), ScoreKey("2012", "A", "Pearson", 200)
    assert width[average] < width[part]


def test_the_best_is_marked_where_it_is_alone_and_ties_as_ties() -> None:
    table = compare(systems(0.30, 0.31, 2.0), resamples=300)
    for cells in table.scores.values():
        assert [cell.mark for cell in cells] == ["tied", "tied", ""]
    for cells in compare(systems(0.1, 2.0), resamples=300).scores.values():
        assert [cell.mark for cell in cells] == ["best", ""]
    for cells in compare(systems(0.1), resamples=300).scores.values():
        assert [cell.mark for cell in cells] == [""]
    same = systems(0.3)["s0"]
    for gap in compare({"one": same, "other": same}, resamples=300).differences:
        assert (gap.difference[:3], gap.p, gap.p_holm) == ((0, 0, 0), 1, 1)


def test_gaps_are_paired_and_corrected_over_the_whole_table() -> None:
    table = compare(systems(0.30, 0.34, 0.6), resamples=1_000)
    assert len(table.differences) == 3 * len(table.scores)
    assert {(gap.first, gap.second) for gap in table.differences} == {("s0", "s1"), ("s0", "s2"), ("s1", "s2")}
    ordered = sorted(table.differences, key=lambda gap: gap.p)
    steps = [min(1.0, gap.p * (len(ordered) - place)) for place, gap in enumerate(ordered)]
    np.testing.assert_allclose([gap.p_holm for gap in ordered], np.maximum.accumulate(steps))
    for gap in table.differences:
        cells = dict(zip(table.systems, table.scores[gap.key], strict=True))
        one, two = cells[gap.first], cells[gap.second]
        assert gap.difference.value == pytest.approx(one.value - two.value)
        unpaired = np.hypot(one.high - one.low, two.high - two.low)
        assert gap.difference.high - gap.difference.low < unpaired


def test_paired_errors_agree_with_williams_test() -> None:
    """Williams (1959): a t test of two correlations with one variable, for normal data; in the mean over samples."""
    rng = np.random.default_rng(1)
    text = [str(number) for number in range(400)]
    ratios = []
    for _ in range(20):
        gold, shared, *own = rng.normal(size=(4, 400))
        one, two = gold + shared + 0.5 * own[0], gold + 1.15 * shared + 0.5 * own[1]
        data = StsSet("2012", "A", gold, text, text)
        gap = compare({"one": StsScores([data], [one]), "two": StsScores([data], [two])}, resamples=500).differences[0]
        r = np.corrcoef([gold, one, two])
        mean, spread = (r[0, 1] + r[0, 2]) / 2, 2 * 399 / 397 * np.linalg.det(r)
        t = (r[0, 1] - r[0, 2]) * np.sqrt(399 * (1 + r[1, 2]) / (spread + mean**2 * (1 - r[1, 2]) ** 3))
        ratios.append(stats.norm.isf(gap.p / 2) / abs(t))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


def test_the_seed_and_the_sets_name_decide_the_resamples() -> None:
    given = systems(0.3, 0.4)
    few = {name: StsScores(scores.sets[1:2], scores.cosines[1:2]) for name, scores in given.items()}
    row = ScoreKey("2012", "B", "Pearson", 100)
    assert compare(given, resamples=150).scores[row] == compare(few, resamples=150).scores[row]
    assert compare(given, resamples=150, seed=1).scores[row] != compare(few, resamples=150).scores[row]


def test_how_many_resamples_are_made_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    given = systems(0.3, 0.4)
    whole = compare(given, ["mean", "concatenated"], resamples=150)
    module = sys.modules[compare.__module__]  # which the function hides
    monkeypatch.setattr(module, "MAX_WEIGHTS", 1_500)
    parts = compare(given, ["mean", "concatenated"], resamples=150)
    for key, estimates in whole.scores.items():
        for one, other in zip(estimates, parts.scores[key], strict=True):
            assert one[:3] == pytest.approx(other[:3], abs=1e-9)


@pytest.mark.parametrize(("resamples", "level"), [(99, 0.95), (1_000, 1.0), (1_000, 95.0)])
def test_senseless_settings_are_refused(resamples: int, level: float) -> None:
    with pytest.raises(BgtError, match=r"expected 100 or more, and a level from 0\.5 to 1"):
        compare(systems(0.3), resamples=resamples, level=level)


def test_an_unknown_aggregation_is_named() -> None:
    with pytest.raises(BgtError, match="'median'; choose from mean, weighted, concatenated") as error:
        compare(systems(0.3), ["median"])
    assert error.value.exit_code == 2


def test_other_pairs_are_not_compared() -> None:
    one, other = systems(0.3)["s0"], systems(0.3, seed=1)["s0"]
    with pytest.raises(BgtError, match="2012 A: 'other' was scored on other pairs"):
        compare({"one": one, "other": other}, resamples=100)
    fewer = StsScores(one.sets[:1], one.cosines[:1])
    with pytest.raises(BgtError, match="'fewer' has no scores of 2012 B; it has 2012 A"):
        compare({"one": one, "fewer": fewer}, resamples=100)


def test_kept_scores_come_back_as_they_were(tmp_path: Path) -> None:
    given = systems(0.3, 0.4)
    write_scores(tmp_path / "kept.parquet", given)
    restored = read_scores(tmp_path / "kept.parquet")
    assert list(restored) == list(given)
    for name, scores in restored.items():
        for data, known in zip(scores.sets, given[name].sets, strict=True):
            assert (str(data), data.left_lang, data.right_lang) == (str(known), known.left_lang, known.right_lang)
        assert compare({"a": scores, "b": given[name]}, resamples=100).differences[0].difference.value == 0
        for ours, theirs in zip(scores.cosines, given[name].cosines, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.parquet"]


def test_files_that_hold_no_scores_are_named(tmp_path: Path) -> None:
    kept = tmp_path / "kept.parquet"
    with pytest.raises(BgtError, match=r"kept\.parquet: can't be read") as error:
        read_scores(kept)
    assert error.value.exit_code == 3
    kept.write_bytes(b"text, not Parquet")
    with pytest.raises(BgtError, match=r"kept\.parquet: not a file that bgt sts --scores writes"):
        read_scores(kept)
    parquet.write_table(pa.table({"system": ["a"]}), kept)
    with pytest.raises(BgtError, match=r"kept\.parquet: not a file that bgt sts --scores writes"):
        read_scores(kept)
    with pytest.raises(BgtError, match=r"can't be written"):
        write_scores(tmp_path, systems(0.3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.slice(1), "pairs are missing or repeated"),
        (lambda rows: rows.set_column(7, "cosine", pa.array([np.nan] * rows.num_rows)), "a cosine is NaN"),
        (lambda rows: rows.slice(0, 0), "no scores in it"),
    ],
)
def test_damaged_scores_are_named(change: Callable, message: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.parquet"
    write_scores(kept, systems(0.3))
    parquet.write_table(change(parquet.read_table(kept)), kept)
    with pytest.raises(BgtError, match=message):
        read_scores(kept)


def small(rows: int = 12, seed: int = 0) -> dict[str, StsScores]:
    """Two systems on two small sets."""
    rng = np.random.default_rng(seed)
    texts = [[f"{side}{row}" for row in range(rows)] for side in "lr"]
    sets = [StsSet("2012", name, rng.random(rows), *texts) for name in "AB"]
    return {name: StsScores(sets, [data.gold + rng.normal(0, 0.3, rows) for data in sets]) for name in ("x", "y")}


def test_resamples_are_of_the_seed_and_the_name_of_the_set() -> None:
    given = small()
    values, draws = bootstrap_scores(list(given.values()), resamples=230, seed=6)
    for number, data in enumerate(given["x"].sets):
        weights = resample(np.random.default_rng([6, crc32(f"2012 {data.name}".encode())]), 12, 230)
        expected = pearson(weights, np.stack([system.cosines[number] for system in given.values()]), data.gold)
        key = ScoreKey("2012", data.name, "Pearson", 12)
        np.testing.assert_allclose(draws[key], 100 * expected)
        assert values[key] == pytest.approx([100 * stats.pearsonr(system.cosines[number], data.gold)[0]
                                             for system in given.values()])  # fmt: skip
    with pytest.raises(ValueError, match=r"shorter|longer"):
        bootstrap_scores([given["x"], StsScores(given["x"].sets, given["y"].cosines[:1])], resamples=100, seed=0)


def test_a_table_says_how_it_was_made() -> None:
    given = small()
    table = compare(given, ["weighted"], resamples=120, level=0.9, seed=4)
    assert (table.level, table.resamples, table.seed) == (0.9, 120, 4)
    assert {name: scores.cosines for name, scores in table.pairs.items()} == {
        name: scores.cosines for name, scores in given.items()
    }
    assert table.about == (
        f"{explain(given['x'].sets, ['weighted'])}; 90% intervals from 120 resamples of each set's pairs"
        "; differences: paired bootstrap, Holm over the table"
    )
    alone = compare({"x": given["x"]})
    assert (alone.level, alone.resamples, alone.seed) == (0.95, 2_000, 0)
    assert alone.about.endswith("95% intervals from 2000 resamples of each set's pairs")


@pytest.mark.parametrize("column", ["left", "right", "gold"])
def test_pairs_that_differ_in_one_column_are_other_pairs(column: str) -> None:
    data = small()["x"].sets[0]
    given = getattr(data, column)
    changed = given[::-1] if column == "gold" else ["z", *given[1:]]
    assert same_pairs(data, replace(data)) and not same_pairs(data, replace(data, **{column: changed}))
