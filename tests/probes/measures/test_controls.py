"""Control tasks and curves step by step; erasure, where the theorems say what is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bgt_core.evaluation.bootstrap import wilson
from bgt_core.vectors.linear_probe import LinearProbe
from probes import ProbeConfig
from probes.measures import controls
from probes.measures.controls import (
    Eraser,
    control_labels,
    curve,
    erase,
    keys,
    leace,
    random_directions,
    selectivity,
)
from probes.measures.measure import Measured, fit, measure, probe_factory
from probes.measures.significance import bootstrap
from probes.measures.study import Study
from probes.task import Items
from tests.close import assert_close


def study(train: int = 200, dev: int = 40, test: int = 60, seeds: int = 1, words: int = 8) -> Study:
    """Labels turn about; a word comes again every so many items; seeds test on the same rows."""
    rows = np.arange(train + dev + test)
    labels = rows // words % 2
    cut = tuple(np.split(rows, [train, train + dev]))
    given = Items([f"w{row % words} number" for row in rows], [str(label) for label in labels], (rows // 2).tolist())
    return Study("toy", "en", given, ["0", "1"], labels, [cut] * seeds, 5)


def noise(made: Study, width: int, signal: float = 0.0) -> np.ndarray:
    vectors = np.random.default_rng(1).normal(size=(len(made.labels), width))
    vectors[:, 0] += signal * made.labels
    return vectors


def test_the_key_is_the_rarest_of_the_frequent_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(["a b", "A c", "b a", "c a b", "", "!?"]) == ["b", "c", "b", "c", "", "!"]
    monkeypatch.setattr(controls, "FREQUENT", 1)
    assert keys(["a b", "a c", "c"]) == ["a", "a", ""]


def test_a_key_has_one_label_and_labels_their_shares() -> None:
    names = [f"k{number % 3_000}" for number in range(9_000)]
    labels = np.random.default_rng(1).choice(3, 9_000, p=[0.6, 0.3, 0.1])
    drawn, known = control_labels(names, labels, np.arange(2_000), seed=0)
    assert all(len(set(drawn[number::3_000])) == 1 for number in range(3_000))
    assert np.bincount(drawn) / 9_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.04)
    assert known.tolist() == [number % 3_000 < 2_000 for number in range(9_000)]
    assert (drawn != control_labels(names, labels, np.arange(2_000), seed=1)[0]).any()


@pytest.mark.parametrize("probe", ["linear", "mlp2"])
def test_selectivity_is_of_the_items_whose_key_recurs(probe: str) -> None:
    """Against the same, step by step; some test items have a key of their own."""
    made = study(seeds=2)
    sentences = [text if row % 7 else f"own{row}" for row, text in enumerate(made.items.sentences)]
    made = replace(made, items=replace(made.items, sentences=sentences))
    vectors = noise(made, 6, signal=2.0)
    config = ProbeConfig(probe, seed=5, resamples=200)
    train, dev, test = made.cuts[0]
    task = measure(probe_factory(probe), [vectors], made.labels, made.cuts)
    given = selectivity(made, [vectors], task, config)
    right, tested = np.zeros((1, 2, 300), bool), np.zeros((2, 300), bool)
    for seed in range(2):
        labels, known = control_labels(keys(sentences), made.labels, train, 5 + seed)
        rows = test[known[test]]
        assert 30 <= len(rows) < 60
        fitted, _ = fit(probe_factory(probe)(seed), vectors, labels, train, dev[known[dev]])
        right[0, seed, rows] = fitted.predict(vectors[rows]) == labels[rows]
        tested[seed, rows] = True
    own, control = bootstrap([task.right, right], tested, made.items.groups, 200, 5)
    low, high = (100 * end for end in (own - control).interval())
    assert list(given.values()) == pytest.approx([control.mean, 100 * (own.mean - control.mean), low, high])
    assert given["control"] == right[:, tested].mean()
    assert given["selectivity_low"] < given["selectivity"] < given["selectivity_high"]


@pytest.mark.parametrize(("kinds", "made_one"), [((30, 30, 8), True), ((29, 30, 8), False), ((30, 29, 8), False),
                                                 ((30, 30, 1), False)])  # fmt: skip
def test_thirty_recurring_items_and_two_labels_make_a_control_task(kinds: tuple[int, int, int], made_one: bool) -> None:
    dev, test, words = kinds  # of one key there is one label
    made = study(dev=dev, test=test, words=words)
    vectors = noise(made, 3)
    task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
    assert bool(selectivity(made, [vectors], task, ProbeConfig(resamples=100))) is made_one


def test_an_erasure_stands_beside_as_many_random_directions() -> None:
    made = study(seeds=2)
    cuts = [made.cuts[0], (np.arange(20, 200), *made.cuts[0][1:])]
    made = replace(made, cuts=cuts)
    inputs = [noise(made, 5, signal=3.0), noise(made, 5, signal=1.5)]
    given = erase(made, inputs, "own", ProbeConfig(seed=4))
    accuracies = []
    for vectors in inputs:
        for seed, (train, dev, test) in enumerate(cuts):
            eraser, both = leace(vectors[train], made.labels[train]), []
            for each in (eraser, random_directions(vectors[train], 1, 4 + seed)):
                probe, _ = fit(probe_factory("linear")(0), each(vectors), made.labels, train, dev)
                both.append((probe.predict(each(vectors)[test]) == made.labels[test]).mean())
            accuracies.append(both)
    assert (given.latent, given.method, given.rank) == ("own", "leace", 1)
    assert (given.accuracy, given.random_accuracy) == pytest.approx(np.mean(accuracies, 0).tolist())


def test_a_curve_is_of_nested_whole_groups_and_ends_with_other_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "FAMILIES", ("linear", "mlp2"))
    made = study()
    vectors = noise(made, 4, signal=2.0)
    seen: list[Any] = []

    def watched(make: Any, inputs: Any, labels: Any, cuts: Any) -> Measured:
        seen.append((type(make(0)).__name__, cuts[0][0]))
        return measure(make, inputs, labels, cuts)

    monkeypatch.setattr(controls, "measure", watched)
    points = curve(made, vectors, "own", ProbeConfig(seed=1))
    assert [(point.latent, point.probe, point.n_train) for point in points] == [
        ("own", "linear", 12), ("own", "linear", 24), ("own", "linear", 50), ("own", "linear", 100),
        ("own", "linear", 200), ("own", "mlp2", 200)]  # fmt: skip
    assert [name for name, _ in seen] == ["LinearProbe"] * 5 + ["MLPProbe"]
    rank = np.random.default_rng(1).permutation(100)
    for (_, rows), groups, point in zip(seen, (6, 12, 25, 50, 100, 100), points, strict=True):
        assert rows.tolist() == [row for row in range(200) if rank[row // 2] < groups]
        assert (point.ci_low, point.ci_high) == pytest.approx(wilson(round(point.accuracy * 60), 60))
    alike = np.where((made.labels == 0) & (rank[np.arange(300) // 2 % 100] < 6), 1, made.labels)
    sizes = [point.n_train for point in curve(replace(made, labels=alike), vectors, "own", ProbeConfig(seed=1))]
    assert sizes == [24, 50, 100, 200, 200]  # the first part has one label: nothing to learn


def planted(items: int = 3_000, width: int = 12, seed: int = 0, oblique: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Three unequal clouds; means differ in two directions, and other directions are correlated with these."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, items, p=[0.5, 0.3, 0.2])
    vectors = rng.standard_normal((items, width))
    vectors[:, :3] += 3 * np.eye(3)[labels]
    mixing = np.random.default_rng(9).standard_normal((width, width)) if oblique else np.eye(width)
    return vectors @ mixing + 4, labels


@pytest.fixture(scope="module")
def eraser() -> Eraser:
    return leace(*planted())


def test_after_leace_no_linear_probe_beats_the_majority(eraser: Eraser) -> None:
    vectors, labels = planted()
    assert LinearProbe().fit(vectors, labels).score(vectors, labels) > 0.9
    erased = eraser(vectors)
    told = np.eye(3)[labels]
    theorem = (erased - erased.mean(0)).T @ (told - told.mean(0)) / len(labels)
    assert_close(theorem, 0, scale=vectors.std())
    # hardly a penalty, on its own training items
    best = LogisticRegression(C=1e6, tol=1e-8, max_iter=10_000).fit(erased, labels)
    shares = np.bincount(labels) / len(labels)
    assert best.predict_proba(erased) == pytest.approx(np.tile(shares, (len(labels), 1)), abs=1e-3)
    assert best.score(erased, labels) == shares.max()


def test_a_unit_that_is_the_label_leaves_no_rounding_error_to_tell_it() -> None:
    labels = np.arange(300) % 2
    noise = np.random.default_rng(0).standard_normal((300, 3)) * [1e-3, 1, 1e3]
    for kind in (np.float32, np.float64):
        vectors = np.column_stack([2 * labels - 1, noise + 0.3 * labels[:, None]]).astype(kind)
        erased = leace(vectors, labels)(vectors)
        assert np.ptp(erased[:, 0]) == 0
        assert LinearProbe().fit(erased, labels).score(erased, labels) < 0.6
