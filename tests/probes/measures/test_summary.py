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
from probes.measures import controls, summary
from probes.measures.control_task import control_labels, keys, shuffled
from probes.measures.controls import Selectivity, capacity, curve, curves, erase, erasures, selectivity
from probes.measures.erasure import inlp, leace, random_directions
from probes.measures.measure import Measured, fit, measure, probe_factory
from probes.measures.significance import Runs, bootstrap
from probes.measures.study import Study
from probes.measures.summary import extra_scores, predictions_of, score, summarise
from probes.measures.warnings import encoder_warnings, item_warnings, predictor_warnings, with_note
from probes.result import MAJORITY, ProbeScore
from probes.task import Items

CONFIG = ProbeConfig(control=None)


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
                       "right": predicted == labels, "dev": 0.75, "strength": 1.0} | fields)  # fmt: skip


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
    given = score(made, "semantic", of, runs(points), ProbeConfig(level=0.8, probe="mlp3"))
    mean = np.mean(points)
    assert (given.task, given.lang, given.latent, given.n_train, given.n_test, given.classes) == (
        "toy", "en", "semantic", 152, 60, 2)  # fmt: skip
    assert given.accuracy == mean and (given.ci_low, given.ci_high) == wilson(mean * 60, 60, 0.8)
    assert given.sd == pytest.approx(np.mean([np.std(row, ddof=1) for row in points]))
    assert (given.encoders, given.probe, given.note) == (3, "mlp3", "did not converge")
    assert given.encoder_sd == pytest.approx(np.std([0.75, 0.7, 0.7], ddof=1))
    assert (given.boot_low, given.boot_high) == pytest.approx(runs(points).interval(0.8))
    assert given.information == pytest.approx((1.0 + 5 * 0.25) / 6)
    alone = score(made, "length", measured(np.zeros((1, 1, 300)), made.labels), runs([[0.7]]), CONFIG)
    assert (alone.encoders, alone.encoder_sd, alone.sd, alone.probe, alone.note) == (1, 0.0, 0.0, "length", "")
    two = score(made, "own", measured(np.zeros((2, 1, 300)), made.labels), runs([[0.7], [0.6]]), CONFIG)
    assert two.sd == 0 and two.encoder_sd == pytest.approx(0.1 / math.sqrt(2))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_without_an_error_or_a_success_the_interval_is_wilsons_too(share: float) -> None:
    of = measured(np.zeros((1, 1, 300)), study().labels)
    given = score(study(), "own", of, runs([[share]], spread=0.0), CONFIG)
    assert (given.boot_low, given.boot_high) == (given.ci_low, given.ci_high) == pytest.approx(wilson(share * 60, 60))
    wide = score(study(seeds=2), "own", of, runs([[share, share]], spread=0.3), CONFIG)
    assert (wide.boot_low, wide.boot_high) == ((0.0, pytest.approx(wide.boot_high)) if share == 0 else
                                               (pytest.approx(wide.boot_low), 1.0))  # fmt: skip
    assert wide.boot_low <= wide.ci_low and wide.boot_high >= wide.ci_high
    low, high = runs([[share, share]], spread=0.3).interval(0.95)
    assert wide.boot_low == max(0.0, min(low, wide.ci_low)) and wide.boot_high == min(1.0, max(high, wide.ci_high))


def test_an_interval_ends_where_accuracy_does() -> None:
    given = score(study(seeds=2), "own", measured(np.zeros((1, 2, 300)), study().labels), runs([[0.9, 0.2]]), CONFIG)
    assert (given.boot_low, given.boot_high) == (0.0, 1.0)


def row(latent: str, accuracy: float, half: float = 0.05, **fields: Any) -> ProbeScore:
    return ProbeScore("toy", "en", latent, 200, 60, 2, accuracy, accuracy - half, accuracy + half, 0.0, **fields)


def test_notes_say_how_a_latent_stands_to_the_baselines() -> None:
    rows = [row("own", 0.60), row("other", 0.69), row(MAJORITY, 0.55), row("length", 0.80), row("words", 0.70)]
    scores = {each.latent: each for each in rows}

    def note(score: ProbeScore) -> str:
        return with_note(score, scores, ["own", "other"]).note

    assert note(scores["own"]) == "not separable from majority"  # its interval begins at 0.55
    assert note(scores["other"]) == "below length"  # 0.74 is below 0.75
    assert note(replace(scores["other"], ci_low=0.55)) == "not separable from majority"
    assert note(replace(scores["other"], ci_high=0.75)) == ""
    assert note(scores[MAJORITY]) == "" == note(scores["length"])
    assert note(replace(scores["other"], note="did not converge")) == "did not converge; below length"
    assert note(replace(scores["words"], ci_low=0.5)) == "not separable from majority"


def test_warnings_of_a_predictor_begin_past_their_bounds() -> None:
    of = measured(np.zeros((2, 3, 300)), study().labels, dev=0.75)
    assert predictor_warnings(row("own", 0.70), of, 40) == []
    told = predictor_warnings(row("own", 0.70), replace(of, unconverged=2), 40)
    assert told == ["own: 2 of 6 probes did not converge."]
    half = 1.96 * math.sqrt(0.75 * 0.25 / 40 + 0.2 * 0.8 / 60)
    assert 3 * half * 1.01 < 0.75 - 0.2
    (told,) = predictor_warnings(row("own", 0.2), of, 40)
    assert told == ("own: dev accuracy 75.0 and test accuracy 20.0 are more than 3 intervals apart: the splits differ "
                    "by more than chance.")  # fmt: skip
    (told,) = predictor_warnings(row("own", 1.0), replace(of, dev=0.2), 30)
    assert "dev accuracy 20.0 and test accuracy 100.0" in told
    assert predictor_warnings(row("own", 1.0), replace(of, dev=1.0), 40) == []  # both without an error
    for dev, n_dev in ((0.99, 1_000), (0.6, 40)):
        of_dev = replace(of, dev=dev)
        for accuracy in np.arange(0.05, 1, 0.05):
            half = 1.96 * math.sqrt(dev * (1 - dev) / n_dev + accuracy * (1 - accuracy) / 60)
            assert bool(predictor_warnings(row("own", accuracy), of_dev, n_dev)) == (abs(dev - accuracy) > 3 * half)
    for selectivity_, warned in ((-0.1, True), (0.0, False)):
        told = predictor_warnings(row("own", 0.7, control=0.71, selectivity=selectivity_), of, 40)
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
    config = ProbeConfig(seed=7, level=0.9, resamples=300)
    result = summarise(made, latents, scores, of, drawn, config)
    assert [each.latent for each in result.rows] == names and result.rows[0].note == "n"
    assert result.rows[1].note == "n; below length"
    assert result.warnings == ["own: 1 of 1 probes did not converge."]
    assert (result.task, result.lang, result.seeds, result.seed, result.level) == ("toy", "en", 1, 7, 0.9)
    assert (result.left_out, result.resamples, result.labels, result.items) == (5, 300, ["0", "1"], made.items)
    assert list(result.predictions) == names and result.predictions["own"].bits is of["own"].bits
    gap = result.difference
    paired = drawn["own"] - drawn["other"]
    assert (gap.task, gap.lang, gap.first, gap.second) == ("toy", "en", "own", "other")
    assert (gap.points, gap.p) == (pytest.approx(100 * paired.mean), paired.p())
    assert (gap.ci_low, gap.ci_high) == pytest.approx([100 * end for end in paired.interval(0.9)])
    assert [(each.first, each.second) for each in result.over_baseline] == [("own", "length"), ("other", "length")]
    assert [(each.first, each.second) for each in result.over_majority] == [("own", MAJORITY), ("other", MAJORITY)]
    three = summarise(made, ["own", "other", "words"], scores, of, drawn, config).difference
    assert (three.first, three.second) == ("own", "other")
    bare = summarise(made, ["own"], scores, of, drawn, replace(config, baselines=False))
    assert bare.difference is None and bare.over_baseline == [] and len(bare.over_majority) == 1
    assert [each.latent for each in bare.rows] == ["own", "other", "length", "words"]


def test_further_scores_are_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made, of = study(), measured(np.zeros((1, 1, 300)), study().labels)
    made.items.groups[:] = [row // 2 for row in range(300)]
    vectors = [np.arange(300.0)[:, None], -np.arange(300.0)[:, None]]
    assert extra_scores(made, vectors, of, CONFIG) == {}
    told: list[Any] = []

    def answer(module: Any, name: str, value: Any) -> None:
        monkeypatch.setattr(module, name, lambda *given, **named: told.append((name, given, named)) or value(given))

    answer(controls, "selectivity", lambda given: Selectivity(0.5, 20.0, 10.0, 30.0))
    answer(controls, "capacity", lambda given: 0.75)
    answer(summary, "codelength", lambda given: SimpleNamespace(bits=50 if given[1][1] > 0 else 150, uniform=200.0))
    config = ProbeConfig(capacity=True, mdl=True, seed=3, l2=0.5)
    assert extra_scores(made, vectors, of, config) == {
        "control": 0.5,
        "selectivity": 20.0,
        "selectivity_low": 10.0,
        "selectivity_high": 30.0,
        "capacity": 0.75,
        "codelength": 100.0,
        "compression": 2.0,
    }
    assert [name for name, _, _ in told] == ["selectivity", "capacity", "codelength", "codelength"]
    for (_, given, _), third in zip(told, (vectors, vectors[0]), strict=False):
        assert [id(each) for each in given] == [id(each) for each in (made, third, of, config)]
    for (_, given, named), each in zip(told[2:], vectors, strict=True):
        make, own, labels, groups, classes = given
        assert make(4).strengths == (2.0,) and make(4).random_state == 4
        np.testing.assert_array_equal(own, each[:200])
        np.testing.assert_array_equal(labels, made.labels[:200])
        np.testing.assert_array_equal(groups, np.arange(200) // 2)
        assert classes == 2 and named == {"seed": 3}
    answer(controls, "selectivity", lambda given: None)
    assert extra_scores(made, vectors[:1], of, ProbeConfig(mdl=True)) == {"codelength": 50.0, "compression": 4.0}


def noise(made: Study, width: int, signal: float = 0.0) -> np.ndarray:
    vectors = np.random.default_rng(1).normal(size=(len(made.labels), width))
    vectors[:, 0] += signal * made.labels
    return vectors


@pytest.mark.parametrize(("probe", "l2"), [("linear", None), ("linear", 5.0), ("mlp2", 0.1)])
def test_selectivity_is_of_the_items_whose_key_recurs(probe: str, l2: float | None) -> None:
    """Against the same, step by step; some test items have a key of their own."""
    made = study(seeds=2)
    sentences = [text if row % 7 else f"own{row}" for row, text in enumerate(made.items.sentences)]
    made = replace(made, items=replace(made.items, sentences=sentences))
    made.items.groups[:] = [row // 2 for row in range(300)]
    vectors = noise(made, 6, signal=2.0)
    config = ProbeConfig(probe, control="first", seed=5, resamples=200, level=0.8, l2=l2)
    train, dev, test = made.cuts[0]
    task = measure(probe_factory(probe, l2), [vectors], made.labels, made.cuts)
    given = selectivity(made, [vectors], task, config)
    right, tested = np.zeros((1, 2, 300), bool), np.zeros((2, 300), bool)
    for seed in range(2):
        labels, known = control_labels(keys(sentences, "first"), made.labels, train, 5 + seed)
        rows = test[known[test]]
        assert 30 <= len(rows) < 60
        fitted, _ = fit(probe_factory(probe, l2)(seed), vectors, labels, train, dev[known[dev]])
        right[0, seed, rows] = fitted.predict(vectors[rows]) == labels[rows]
        tested[seed, rows] = True
    own, control = bootstrap([task.right, right], tested, made.items.groups, 200, 5)
    ends = (own - control).interval(0.8)
    assert given == pytest.approx((control.mean, 100 * (own.mean - control.mean), 100 * ends[0], 100 * ends[1]))
    assert given.control == right[:, tested].mean() and given.low < given.points < given.high
    assert selectivity(made, [vectors], task, replace(config, control=None)) is None


def test_the_probes_of_the_control_task_are_those_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the strength that was set, and the seed of the task's probe."""
    probes: list[Any] = []

    def watched(make: Any, inputs: Any, labels: Any, cuts: Any) -> Measured:
        probes.append((make(9).strengths, make(9).random_state))
        return measure(make, inputs, labels, cuts)

    monkeypatch.setattr(controls, "measure", watched)
    made = study(seeds=3)
    task = measured(np.zeros((1, 3, 300)), made.labels)
    assert selectivity(made, [noise(made, 2)], task, ProbeConfig(control="first", l2=4.0, resamples=100))
    assert probes == [((0.25,), 0), ((0.25,), 1), ((0.25,), 2)]


@pytest.mark.parametrize(("dev", "test", "made_one"), [(30, 30, True), (29, 30, False), (30, 29, False)])
def test_thirty_recurring_items_make_a_control_task(dev: int, test: int, made_one: bool) -> None:
    made = study(dev=dev, test=test)
    vectors = noise(made, 3)
    task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
    given = selectivity(made, [vectors], task, ProbeConfig(control="first", resamples=100))
    assert (given is not None) is made_one


def test_one_label_for_all_keys_makes_no_control_task() -> None:
    made = study(words=1)  # one key: one label drawn
    vectors = noise(made, 3)
    task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
    assert selectivity(made, [vectors], task, ProbeConfig(control="first", resamples=100)) is None


@pytest.mark.parametrize(("name", "strength"), [("linear", 1e-4), ("linear", 10.0), ("mlp2", 10.0)])
def test_capacity_is_accuracy_on_shuffled_labels_at_the_strength_of_the_task(name: str, strength: float) -> None:
    made = study()
    vectors = noise(made, 60)
    train, dev, _ = made.cuts[0]
    task = measured(np.zeros((1, 1, 300)), made.labels, strength=strength)
    given = capacity(made, vectors, task, ProbeConfig(name, seed=2))
    mixed = shuffled(shuffled(made.labels, train, 2), dev, 2)
    probe = probe_factory(name)(0).set_params(strengths=(strength,))
    probe.fit(vectors[train], mixed[train], (vectors[dev], mixed[dev]))
    assert given == (probe.predict(vectors[train]) == mixed[train]).mean() > 0.5


@pytest.mark.parametrize("method", ["leace", "inlp"])
def test_an_erasure_stands_beside_as_many_random_directions(method: str) -> None:
    made = study(seeds=2)
    cuts = [made.cuts[0], (np.arange(20, 200), *made.cuts[0][1:])]
    made = replace(made, cuts=cuts)
    inputs = [noise(made, 5, signal=3.0), noise(made, 5, signal=1.5)]
    config = ProbeConfig(seed=4, erase=method, l2=20.0)
    given = erase(made, inputs, "own", method, config)
    accuracies, ranks = [], []
    for vectors in inputs:
        for seed, (train, dev, test) in enumerate(cuts):
            eraser = (
                leace(vectors[train], made.labels[train])
                if method == "leace"
                else inlp(vectors[train], made.labels[train], (vectors[dev], made.labels[dev]))
            )
            ranks.append(eraser.rank)
            both = []
            for each in (eraser, random_directions(vectors[train], eraser.rank, 4 + seed)):
                probe, _ = fit(probe_factory("linear", 20.0)(0), each(vectors), made.labels, train, dev)
                both.append((probe.predict(each(vectors)[test]) == made.labels[test]).mean())
            accuracies.append(both)
    assert (given.latent, given.method, given.rank) == ("own", method, round(np.mean(ranks)))
    assert (given.accuracy, given.random_accuracy) == pytest.approx(np.mean(accuracies, 0).tolist())
    if method == "leace":
        assert erasures(made, {"own": inputs}, config) == [given]
        assert erasures(made, {"own": inputs}, replace(config, erase=None)) == []


def test_a_curve_is_of_nested_whole_groups_and_ends_with_other_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "FAMILIES", ("linear", "mlp2"))
    made = study()
    made.items.groups[:] = [row // 2 for row in range(300)]
    vectors = noise(made, 4, signal=2.0)
    seen: list[Any] = []

    def watched(make: Any, inputs: Any, labels: Any, cuts: Any) -> Measured:
        seen.append((type(make(0)).__name__, make(0).strengths, cuts[0][0]))
        return measure(make, inputs, labels, cuts)

    monkeypatch.setattr(controls, "measure", watched)
    config = ProbeConfig(seed=1, level=0.8, l2=0.5, curve=True)
    points = curve(made, vectors, "own", config)
    assert [(point.latent, point.probe, point.n_train) for point in points] == [
        ("own", "linear", 12), ("own", "linear", 24), ("own", "linear", 50), ("own", "linear", 100),
        ("own", "linear", 200), ("own", "mlp2", 200)]  # fmt: skip
    assert [name for name, _, _ in seen] == ["LinearProbe"] * 5 + ["MLPProbe"]
    rank = np.random.default_rng(1).permutation(100)
    for (_, strengths, rows), groups, point in zip(seen, (6, 12, 25, 50, 100, 100), points, strict=True):
        assert strengths == (2.0,)
        assert rows.tolist() == [row for row in range(200) if rank[row // 2] < groups]
        right = round(point.accuracy * 60)
        assert (point.ci_low, point.ci_high) == pytest.approx(wilson(right, 60, 0.8))
    probe, _ = fit(probe_factory("linear", 0.5)(0), vectors, made.labels, seen[0][2], made.cuts[0][1])
    assert points[0].accuracy == (probe.predict(vectors[240:]) == made.labels[240:]).mean()
    assert curves(made, {"own": [vectors, vectors[:9]]}, config) == points
    assert curves(made, {"own": [vectors]}, replace(config, curve=False)) == []
    one = replace(
        made, labels=np.where(np.isin(made.labels, [0]) & (rank[np.arange(300) // 2 % 100] < 6), 1, made.labels)
    )
    sizes = [point.n_train for point in curve(one, vectors, "own", config)]
    assert sizes == [24, 50, 100, 200, 200]  # the first part has one label: nothing to learn
