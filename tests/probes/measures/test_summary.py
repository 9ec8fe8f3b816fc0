"""From what was measured to scores, notes, warnings and differences, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bgt_core.evaluation.bootstrap import wilson
from probes import ProbeConfig
from probes.measures.measure import Measured
from probes.measures.significance import Runs
from probes.measures.study import Study
from probes.measures.summary import (
    encoder_warnings,
    item_warnings,
    predictions_of,
    score,
    score_warnings,
    summarise,
    with_note,
)
from probes.result import MAJORITY, ProbeScore
from probes.task import Items

CONFIG = ProbeConfig(control=False)


def study(train: int = 200, dev: int = 40, test: int = 60, seeds: int = 1, words: int = 8, width: int = 2) -> Study:
    """Labels turn about; the first token comes again every so many items; seeds test on the same rows."""
    rows = np.arange(train + dev + test)
    labels = rows // words % width
    sentences = [f"w{row % words} number {row}" for row in rows]
    cut = tuple(np.split(rows, [train, train + dev]))
    given = Items(sentences, [str(label) for label in labels], rows.tolist())
    return Study("toy", "en", given, [str(label) for label in range(width)], labels, [cut] * seeds, 5)


def measured(predicted: np.ndarray, labels: np.ndarray, saved: float = 0.5, **fields: Any) -> Measured:
    """(E, S, N) predictions, -1 where not tested; each tested item saves the same bits."""
    told = np.where(predicted >= 0, saved, np.nan).astype(np.float32)
    return Measured(**{"predicted": predicted.astype(np.int32), "bits": told, "saved": told, "unconverged": 0,
                       "right": predicted == labels, "dev": 0.75} | fields)  # fmt: skip


def runs(points: list[list[float]], spread: float = 0.01, seed: int = 0) -> Runs:
    array = np.array(points)
    noise = np.random.default_rng(seed).normal(0, spread, (200, 1, 1))
    return Runs(array, array + noise)


def test_a_score_by_hand() -> None:
    made = study(seeds=2)
    made = replace(made, cuts=[(np.arange(100), *made.cuts[0][1:]), (np.arange(203), *made.cuts[1][1:])])
    saved = np.full((3, 2, 300), np.nan, np.float32)
    saved[:, :, 240:] = 0.25
    saved[0, 0, 240:] = 1.0
    of = measured(np.zeros((3, 2, 300)), made.labels, saved=0.0)
    of = replace(of, saved=saved, unconverged=1)
    points = [[0.7, 0.8], [0.6, 0.8], [0.9, 0.5]]
    given = score(made, "semantic", of, runs(points), ProbeConfig(probe="mlp3"))
    mean = np.mean(points)
    assert (given.task, given.lang, given.latent, given.n_train, given.n_test, given.classes) == (
        "toy", "en", "semantic", 152, 60, 2)  # fmt: skip
    assert given.accuracy == mean and (given.ci_low, given.ci_high) == wilson(mean * 60, 60)
    assert given.sd == pytest.approx(np.mean([np.std(row, ddof=1) for row in points]))
    assert (given.encoders, given.probe, given.note) == (3, "mlp3", "did not converge")
    assert given.encoder_sd == pytest.approx(np.std([0.75, 0.7, 0.7], ddof=1))
    assert (given.boot_low, given.boot_high) == pytest.approx(runs(points).interval())
    assert given.information == pytest.approx((1.0 + 5 * 0.25) / 6)
    alone = score(made, "length", measured(np.zeros((1, 1, 300)), made.labels), runs([[0.7]]), CONFIG)
    assert (alone.encoders, alone.encoder_sd, alone.sd, alone.probe, alone.note) == (1, 0.0, 0.0, "length", "")
    two = score(made, "own", measured(np.zeros((2, 1, 300)), made.labels), runs([[0.7], [0.6]]), CONFIG)
    assert two.sd == 0 and two.encoder_sd == pytest.approx(0.1 / math.sqrt(2))


def row(latent: str, accuracy: float, half: float = 0.05, **fields: Any) -> ProbeScore:
    return ProbeScore("toy", "en", latent, 200, 60, 2, accuracy, accuracy - half, accuracy + half, 0.0, **fields)


def test_notes_say_how_a_latent_stands_to_the_baselines() -> None:
    rows = [row("own", 0.60), row("other", 0.69), row(MAJORITY, 0.55), row("length", 0.80), row("words", 0.70)]
    scores = {each.latent: each for each in rows}

    def note(score: ProbeScore) -> str:
        return with_note(score, scores[MAJORITY], scores["length"] if score.latent in ("own", "other") else None).note

    assert note(scores["own"]) == "not separable from majority"  # its interval begins at 0.55
    assert note(scores["other"]) == "below length"  # 0.74 is below 0.75
    assert note(replace(scores["other"], ci_low=0.55)) == "not separable from majority"
    assert note(replace(scores["other"], ci_high=0.75)) == ""
    assert note(scores[MAJORITY]) == "" == note(scores["length"])
    assert note(replace(scores["other"], note="did not converge")) == "did not converge; below length"
    assert note(replace(scores["words"], ci_low=0.5)) == "not separable from majority"


def test_warnings_of_a_predictor_begin_past_their_bounds() -> None:
    of = measured(np.zeros((2, 3, 300)), study().labels, dev=0.75)
    assert score_warnings(row("own", 0.70), of, 40) == []
    told = score_warnings(row("own", 0.70), replace(of, unconverged=2), 40)
    assert told == ["own: 2 of 6 probes did not converge."]
    half = 1.96 * math.sqrt(0.75 * 0.25 / 40 + 0.2 * 0.8 / 60)
    assert 3 * half * 1.01 < 0.75 - 0.2
    (told,) = score_warnings(row("own", 0.2), of, 40)
    assert told == ("own: dev accuracy 75.0 and test accuracy 20.0 are more than 3 intervals apart: the splits differ "
                    "by more than chance.")  # fmt: skip
    (told,) = score_warnings(row("own", 1.0), replace(of, dev=0.2), 30)
    assert "dev accuracy 20.0 and test accuracy 100.0" in told
    assert score_warnings(row("own", 1.0), replace(of, dev=1.0), 40) == []  # both without an error
    for dev, n_dev in ((0.99, 1_000), (0.6, 40)):
        of_dev = replace(of, dev=dev)
        for accuracy in np.arange(0.05, 1, 0.05):
            half = 1.96 * math.sqrt(dev * (1 - dev) / n_dev + accuracy * (1 - accuracy) / 60)
            assert bool(score_warnings(row("own", accuracy), of_dev, n_dev)) == (abs(dev - accuracy) > 3 * half)
    for selectivity_, warned in ((-0.1, True), (0.0, False)):
        told = score_warnings(row("own", 0.7, control=0.71, selectivity=selectivity_), of, 40)
        assert told == (["own: accuracy on the control task, 71.0, is above that on the task: the probe "
                         "memorises."] if warned else [])  # fmt: skip


def test_warnings_of_items() -> None:
    made = study()
    assert item_warnings(made) == []
    for ones, warned in ((270, False), (271, True)):
        labels = ["x"] * ones + ["y"] * (300 - ones)
        told = item_warnings(replace(made, items=replace(made.items, labels=labels)))
        assert told == (["90% of the items are 'x': accuracy is not informative."] if warned else [])
    texts = list(made.items.sentences)
    texts[200], texts[240], texts[241], texts[202] = texts[0], texts[1], texts[201], texts[2]
    texts[242] = texts[2]  # in all three: counted once
    told = item_warnings(replace(made, items=replace(made.items, sentences=texts)))
    assert told == ["4 sentences are in two splits: drop them, or put their versions in one group."]


@pytest.mark.parametrize(("count", "warned"), [(3, False), (4, True)])
def test_an_encoder_that_truncates_is_warned_of_from_one_in_a_hundred(count: int, warned: bool) -> None:
    asked: list[Any] = []

    def count_truncated(sentences: list[str], *, lang: str) -> int:
        asked.append((sentences, lang))
        return count

    told = encoder_warnings(SimpleNamespace(count_truncated=count_truncated), study())
    assert told == (["4 of 300 sentences are too long for the encoder, which ignores their ends."] if warned else [])
    assert asked == [(study().items.sentences, "en")]
    assert encoder_warnings(SimpleNamespace(), study()) == []


def test_stored_predictions_have_the_mean_of_the_seeds_that_tested() -> None:
    predicted = np.array([[[1, -1, 0], [1, -1, -1]]], dtype=np.int32)
    saved = np.array([[[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]]], dtype=np.float32)
    of = replace(measured(predicted, np.array([1, 1, 1])), saved=saved)
    kept = predictions_of(of)
    assert kept.labels is of.predicted and kept.bits is of.bits and kept.pvi.dtype == np.float32
    np.testing.assert_array_equal(kept.pvi, [1.5, np.nan, 3.0])


def test_a_summary_has_every_row_and_every_difference() -> None:
    made, latents = study(), ["own", "other"]
    names = ["own", "other", MAJORITY, "length", "words"]
    points = {"own": 0.7, "other": 0.6, MAJORITY: 0.5, "length": 0.65, "words": 0.55}
    of = {name: measured(np.zeros((1, 1, 300)), made.labels, unconverged=int(name == "own")) for name in names}
    drawn = {name: runs([[points[name]]], seed=place) for place, name in enumerate(names)}
    scores = {name: replace(row(name, points[name], 0.01), note="n") for name in names}
    config = ProbeConfig(seed=7, resamples=300)
    result = summarise(made, latents, scores, of, drawn, config)
    assert [each.latent for each in result.rows] == names and result.rows[0].note == "n"
    assert result.rows[1].note == "n; below length"
    assert result.warnings == ["own: 1 of 1 probes did not converge."]
    assert (result.task, result.lang, result.seeds, result.seed) == ("toy", "en", 1, 7)
    assert (result.left_out, result.resamples, result.labels, result.items) == (5, 300, ["0", "1"], made.items)
    assert list(result.predictions) == names and result.predictions["own"].bits is of["own"].bits
    gap = result.difference
    paired = drawn["own"] - drawn["other"]
    assert (gap.task, gap.lang, gap.first, gap.second) == ("toy", "en", "own", "other")
    assert (gap.points, gap.p) == (pytest.approx(100 * paired.mean), paired.p())
    assert (gap.ci_low, gap.ci_high) == pytest.approx([100 * end for end in paired.interval()])
    assert [(each.first, each.second) for each in result.over_baseline] == [("own", "length"), ("other", "length")]
    assert [(each.first, each.second) for each in result.over_majority] == [("own", MAJORITY), ("other", MAJORITY)]
    three = summarise(made, ["own", "other", "words"], scores, of, drawn, config).difference
    assert (three.first, three.second) == ("own", "other")
    bare = summarise(made, ["own"], scores, of, drawn, replace(config, baselines=False))
    assert bare.difference is None and bare.over_baseline == [] and len(bare.over_majority) == 1
    assert [each.latent for each in bare.rows] == ["own", "other", "length", "words"]
