"""Measuring with probes whose answers are known beforehand; V-information and online codes where both are known."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from bgt_core.vectors.linear_probe import STRENGTHS, LinearProbe
from probes.measures.measure import (
    MLPProbe,
    bits,
    codelength,
    embed_items,
    language_probe_accuracy,
    measure,
    probe_factory,
)
from probes.measures.study import Study
from probes.task import Items
from tests.close import FLOAT32, assert_close


class Told:
    """A vector is the probability of label 1; labels 0 and 1 were seen, and nothing is learnt."""

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
    # three quarters of train are 0: a label costs log2(4 / 3) or 2 bits without a probe
    assert_close(measured.saved[0, 0, 6:], [2 - 2, math.log2(4 / 3) - 1], 1e-4)
    assert np.isnan(measured.saved).sum() == 32 - 8
    assert measured.dev == np.mean([0.5, 0.5, 0.5, 0.5])
    assert measured.unconverged == 2
    assert measured.bits.dtype == measured.saved.dtype == np.float32
    slow, done = (measure(lambda seed, kind=kind: Told(kind), [vectors], LABELS, [CUT]) for kind in (1, 0))
    assert (slow.unconverged, done.unconverged) == (1, 0)


def test_dev_accuracy_is_the_mean_over_seeds_and_a_label_never_seen_has_a_code() -> None:
    vectors = np.array([0.5, 0.5, 0.5, 0.5, 0.25, 0.75, 0.25, 0.75])[:, None]
    labels = np.array([0, 0, 2, 2, 0, 2, 1, 2])
    measured = measure(lambda seed: Told(0, (0, 2)), [vectors], labels, [CUT, (CUT[0], np.array([4, 6, 7]), CUT[2])])
    assert measured.dev == pytest.approx((1 + 2 / 3) / 2)
    assert measured.predicted[0, 0, 6:].tolist() == [0, 2]
    assert measured.bits[0, 0, 6:] == pytest.approx([-math.log2(1 / 7), -math.log2((4 * 0.75 + 1) / 7)])
    assert_close(measured.saved[0, 0, 6], 0.0, FLOAT32, scale=1)


def test_probes_have_their_units_and_seed() -> None:
    linear, network = probe_factory("linear")(3), probe_factory("mlp7")(5)
    assert type(linear) is LinearProbe and linear.strengths == STRENGTHS and linear.random_state == 3
    assert type(network) is MLPProbe and (network.hidden, network.random_state) == (7, 5)


class Heard:
    """Notes what it is asked; a vector is the length of the sentence."""

    langs = latents = ()

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str) -> np.ndarray:
        self.asked.append((list(sentences), lang, latent))
        return np.array([[len(sentence), len(lang + latent)] for sentence in sentences], dtype=np.float32)


def study(sentences: list[str], labels: np.ndarray, lang: str = "en", **fields: Any) -> Study:
    names = fields.pop("names", [str(label) for label in range(int(labels.max()) + 1)])
    given = Items(sentences, [names[label] for label in labels], list(range(len(sentences))))
    return Study(fields.pop("task", "toy"), lang, given, names, labels, fields.pop("cuts", [CUT]), 0)


def test_sentences_are_read_in_the_language_of_the_study_or_in_their_labels() -> None:
    sentences, encoder = ["a", "bbb", "cc"], Heard()
    one = embed_items(encoder, study(sentences, np.array([0, 1, 0])), "manner")
    assert one.tolist() == [[1, 8], [3, 8], [2, 8]] and encoder.asked == [(sentences, "en", "manner")]
    encoder = Heard()
    several = study(sentences, np.array([1, 0, 1]), "en-fr", names=["en", "fr"])
    assert embed_items(encoder, several, "own").tolist() == [[1, 5], [3, 5], [2, 5]]
    assert encoder.asked == [(["bbb"], "en", "own"), (["a", "cc"], "fr", "own")]


def test_a_probe_learns_from_the_training_items_and_is_chosen_by_the_development_items() -> None:
    vectors, made = np.arange(8.0)[:, None] / 10, []
    measure(lambda seed: made.append(Told(seed)) or made[-1], [vectors], LABELS, [CUT])
    given, labels, dev = made[0].given
    for got, expected in ((given, vectors[:4]), (labels, LABELS[:4]), (dev[0], vectors[4:6]), (dev[1], LABELS[4:6])):
        np.testing.assert_array_equal(got, expected)


def channel(items: int, flip: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A balanced bit, and one number that is the bit, flipped with that probability."""
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
    if flip == 0.1:  # a flipped item misleads by log2(0.1 / 0.5), another tells log2(0.9 / 0.5)
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


@pytest.mark.parametrize("versions", [1, 4])
def test_a_code_without_vectors_is_the_shares_of_what_came_before(versions: int) -> None:
    """Closed form, block by block, with the order that the code itself drew; versions of a sentence keep theirs."""
    labels = np.random.default_rng(0).choice(3, 1_000, p=[0.7, 0.2, 0.1])
    groups, zeros = np.arange(1_000) // versions, np.zeros((1_000, 1))
    code = codelength(lambda seed: DummyClassifier(strategy="prior"), zeros, labels, groups, 3, 2)
    cuts = [1, 2, 4, 8, 16, 32, 63, 125, 250, 500, 1_000]  # Voita's schedule
    for shuffle, blocks in enumerate(code):
        order = np.random.default_rng((0, shuffle)).permutation(1_000 // versions)
        sent = labels[sorted(range(1_000), key=lambda row: (order[row // versions], row))]
        expected = [math.log2(3)]
        for begin, end in itertools.pairwise(cuts):
            counts = np.bincount(sent[:begin], minlength=3)
            shares = counts / begin if counts.all() else (counts + 1) / (begin + 3)
            expected.append(-np.log2(shares[sent[begin:end]]).sum())
        assert blocks == pytest.approx(expected)


def test_the_first_block_costs_log2_k_a_label_and_an_easy_property_little_else() -> None:
    vectors, labels = channel(4_000, 0.0)
    easy = codelength(lambda seed: LinearProbe(random_state=seed), vectors, labels, range(4_000), 2)
    assert easy[:, 0].tolist() == [4.0] * 3  # 0.1% of 4,000, one bit each
    assert easy.sum(1).mean() < 4_000 / 25
    noise = np.random.default_rng(1).standard_normal((4_000, 20))
    hard = codelength(lambda seed: LinearProbe(random_state=seed), noise, labels, range(4_000), 2)
    assert hard.sum(1).mean() == pytest.approx(4_000, rel=0.02)
    noisy = codelength(lambda seed: LinearProbe(random_state=seed), channel(4_000, 0.1)[0], labels, range(4_000), 2)
    assert noisy.sum(1).mean() / 4_000 == pytest.approx(entropy([0.1, 0.9], base=2), abs=0.06)


def test_languages_are_told_apart_only_where_they_differ() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 400, 5)).astype(np.float32)
    accuracy, low, high = language_probe_accuracy(left, right)
    assert low < 0.5 < high and low < accuracy < high  # 160 held-out sentences of one distribution
    assert language_probe_accuracy(left, right + 20)[0] == 1
