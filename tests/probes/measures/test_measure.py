"""Measures of probes with known answers, V-information with known values, and control tasks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.exceptions import ConvergenceWarning

from probes import ProbeConfig
from probes.measures import measure as measures
from probes.measures.measure import (
    bits,
    control_labels,
    fit,
    keys,
    measure,
    probe_factory,
    selectivity,
)
from probes.measures.significance import bootstrap
from probes.measures.study import Study
from probes.task import Items
from tests.close import assert_close


class Told:
    """A probe that learns nothing: a vector is the probability of label 1, of the labels 0 and 1."""

    def __init__(self, seed: int, classes: Sequence[int] = (0, 1)):
        self.seed, self.classes_ = seed, np.array(classes)

    def fit(self, X: np.ndarray, y: np.ndarray, dev: tuple[np.ndarray, np.ndarray]) -> None:
        self.given = X, y, dev
        if self.seed:
            warnings.warn("not yet", ConvergenceWarning if self.seed == 1 else UserWarning, stacklevel=1)

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        return np.log(np.hstack([1 - X[:, :1], X[:, :1]]))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_log_proba(X).argmax(1)]


LABELS = np.array([0, 0, 0, 1, 0, 1, 1, 0])
CUT = np.array([0, 1, 2, 3]), np.array([4, 5]), np.array([6, 7])


def test_every_number_of_a_probe_by_hand() -> None:
    vectors = np.array([0.5, 0.5, 0.5, 0.5, 0.25, 0.125, 0.25, 0.5 - 2**-20])[:, None]
    other = 1 - vectors
    turned = CUT[0], CUT[2], CUT[1]
    measured = measure(Told, [vectors, other], LABELS, [CUT, turned])
    assert measured.predicted.dtype == np.int32
    np.testing.assert_array_equal(measured.predicted[0], [[-1] * 6 + [0, 0], [-1] * 4 + [0, 0, -1, -1]])
    np.testing.assert_array_equal(measured.predicted[1], [[-1] * 6 + [1, 1], [-1] * 4 + [1, 1, -1, -1]])
    assert np.argwhere(measured.right).tolist() == [[0, 0, 7], [0, 1, 4], [1, 0, 6], [1, 1, 5]]
    assert_close(measured.bits[0, 0, 6:], [2.0, 1.0], 1e-4)
    assert measured.bits[1, 1, 4:6] == pytest.approx([2.0, -math.log2(0.875)])
    assert np.isnan(measured.bits).sum() == 32 - 8
    # three quarters of train have label 0, so without a probe a label costs log2(4 / 3) or 2 bits
    assert_close(measured.saved[0, 0, 6:], [2 - 2, math.log2(4 / 3) - 1], 1e-4)
    assert np.isnan(measured.saved).sum() == 32 - 8
    assert measured.dev == np.mean([0.5, 0.5, 0.5, 0.5])
    assert measured.unconverged == 2
    assert measured.bits.dtype == measured.saved.dtype == np.float32
    slow, done = (measure(lambda seed, kind=kind: Told(kind), [vectors], LABELS, [CUT]) for kind in (1, 0))
    assert (slow.unconverged, done.unconverged) == (1, 0)


def channel(items: int, flip: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Balanced binary labels; each vector is one number, the label, flipped with probability `flip`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(items) % 2
    return (labels ^ (rng.random(items) < flip)).astype(np.float32)[:, None], labels


@pytest.mark.parametrize("flip", [0.0, 0.1, 0.3, 0.5])
def test_v_information_of_a_binary_channel_is_its_capacity(flip: float) -> None:
    vectors, labels = channel(20_000, flip)
    rows = np.arange(20_000)
    measured = measure(
        probe_factory("linear"), [vectors], labels, [(rows[:10_000], rows[10_000:12_000], rows[12_000:])]
    )
    assert np.nanmean(measured.saved) == pytest.approx(1 - entropy([flip, 1 - flip], base=2), abs=0.03)
    told = measured.saved[0, 0, 12_000:]
    flipped = vectors[12_000:, 0] != labels[12_000:]
    if flip == 0.1:  # a flipped item gives log2(0.1 / 0.5) bits, any other log2(0.9 / 0.5)
        assert told[flipped].mean() == pytest.approx(math.log2(0.2), abs=0.15)
        assert told[~flipped].mean() == pytest.approx(math.log2(1.8), abs=0.03)


def test_bits_are_logarithms_to_2_and_absent_labels_have_a_code() -> None:
    logs = np.log([[0.5, 0.5], [0.25, 0.75]])
    known, labels = np.array([0, 2]), np.array([0, 2])
    assert bits(logs, known, labels, 2, 10) == pytest.approx([1.0, -math.log2(0.75)])
    smoothed = bits(logs, known, np.array([0, 1]), 3, trained=10)  # (10 q + 1) / 13
    assert smoothed == pytest.approx([-math.log2(6 / 13), -math.log2(1 / 13)])
    every = [bits(logs[:1], known, np.array([label]), 3, 10)[0] for label in range(3)]
    assert np.exp2(-np.array(every)).sum() == pytest.approx(1.0)


def recurring(dev: int = 40, test: int = 60, seeds: int = 1, words: int = 8) -> tuple[Study, np.ndarray]:
    """Make a study and its vectors: labels alternate in blocks of `words` items, words recur after as many."""
    rows = np.arange(200 + dev + test)
    labels = rows // words % 2
    cut = tuple(np.split(rows, [200, 200 + dev]))
    given = Items([f"w{row % words} number" for row in rows], [str(label) for label in labels], (rows // 2).tolist())
    vectors = np.random.default_rng(1).normal(size=(len(rows), 6))
    vectors[:, 0] += 2 * labels
    return Study("toy", "en", given, ["0", "1"], labels, [cut] * seeds, 5), vectors


def test_the_key_is_the_rarest_of_the_frequent_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys(["a b", "A c", "b a", "c a b", "", "!?"]) == ["b", "c", "b", "c", "", "!"]
    monkeypatch.setattr(measures, "FREQUENT", 1)
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
    """Compare with a step-by-step computation; some test items have keys that do not recur."""
    made, vectors = recurring(seeds=2)
    sentences = [text if row % 7 else f"own{row}" for row, text in enumerate(made.items.sentences)]
    made = replace(made, items=replace(made.items, sentences=sentences))
    train, dev, test = made.cuts[0]
    task = measure(probe_factory(probe), [vectors], made.labels, made.cuts)
    given = selectivity(made, [vectors], task, ProbeConfig(probe, seed=5, resamples=200))
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
    made, vectors = recurring(*kinds[:2], words=kinds[2])  # one key has one label
    task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
    assert bool(selectivity(made, [vectors], task, ProbeConfig(resamples=100))) is made_one
