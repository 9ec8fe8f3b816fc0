"""V-information and online codes where both are known."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from bgt_core.vectors.linear_probe import LinearProbe
from probes.measures.information import bits, share_bits
from probes.measures.mdl import SCHEDULE, block_boundaries, codelength
from probes.measures.measure import measure, probe_factory


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


def test_share_bits_are_those_of_the_training_shares() -> None:
    assert share_bits(np.array([0, 0, 0, 1]), np.array([0, 1]), 2) == pytest.approx([-math.log2(0.75), 2.0])


def test_the_schedule_is_voitas() -> None:
    assert block_boundaries(100_000) == [100, 200, 400, 800, 1_600, 3_200, 6_250, 12_500, 25_000, 50_000, 100_000]
    assert len(SCHEDULE) == 11
    assert block_boundaries(50) == [1, 2, 4, 7, 13, 25, 50]


@pytest.mark.parametrize("versions", [1, 4])
def test_a_code_without_vectors_is_the_shares_of_what_came_before(versions: int) -> None:
    """Closed form, block by block, with the order that the code itself drew; versions of a sentence keep theirs."""
    labels = np.random.default_rng(0).choice(3, 1_000, p=[0.7, 0.2, 0.1])
    groups, zeros = np.arange(1_000) // versions, np.zeros((1_000, 1))
    code = codelength(lambda seed: DummyClassifier(strategy="prior"), zeros, labels, groups, 3, 2)
    for shuffle, blocks in enumerate(code.blocks):
        order = np.random.default_rng((0, shuffle)).permutation(1_000 // versions)
        sent = labels[sorted(range(1_000), key=lambda row: (order[row // versions], row))]
        expected, cuts = [math.log2(3) * block_boundaries(1_000)[0]], block_boundaries(1_000)
        for begin, end in itertools.pairwise(cuts):
            counts = np.bincount(sent[:begin], minlength=3)
            shares = counts / begin if counts.all() else (counts + 1) / (begin + 3)
            expected.append(-np.log2(shares[sent[begin:end]]).sum())
        assert blocks == pytest.approx(expected)
    assert code.bits == pytest.approx(np.mean([sum(blocks) for blocks in code.blocks]))
    assert code.uniform == pytest.approx(1_000 * math.log2(3))
    assert code.compression == pytest.approx(code.uniform / code.bits)


def test_the_first_block_costs_log2_k_a_label_and_an_easy_property_little_else() -> None:
    vectors, labels = channel(4_000, 0.0)
    easy = codelength(lambda seed: LinearProbe(random_state=seed), vectors, labels, range(4_000), 2)
    assert [blocks[0] for blocks in easy.blocks] == [4.0] * 3  # 0.1% of 4,000, one bit each
    assert easy.compression > 25
    noise = np.random.default_rng(1).standard_normal((4_000, 20))
    hard = codelength(lambda seed: LinearProbe(random_state=seed), noise, labels, range(4_000), 2)
    assert hard.compression == pytest.approx(1.0, abs=0.02)
    noisy = codelength(lambda seed: LinearProbe(random_state=seed), channel(4_000, 0.1)[0], labels, range(4_000), 2)
    assert noisy.bits / 4_000 == pytest.approx(entropy([0.1, 0.9], base=2), abs=0.06)


def test_versions_of_a_sentence_are_sent_together() -> None:
    groups = np.arange(400) // 2
    seen: list[int] = []

    class Watch(DummyClassifier):
        def fit(self, X: np.ndarray, y: np.ndarray) -> DummyClassifier:
            seen.append(len(np.unique(X[:, 0])) * 2 - len(X))
            return super().fit(X, y)

    codelength(lambda seed: Watch(strategy="prior"), groups[:, None].astype(float), np.arange(400) % 2, groups, 2, 1)
    assert set(seen) <= {0, 1}  # at most the group at the border is cut


def test_each_prefix_with_two_labels_has_a_probe_of_its_own() -> None:
    """Labels are in two runs; a prefix with one of them alone has its share, and no probe."""
    made: list[int] = []

    class Restless(DummyClassifier):
        warning: type[Warning] = ConvergenceWarning

        def fit(self, X: np.ndarray, y: np.ndarray) -> DummyClassifier:
            assert len(np.unique(y)) == 2
            warnings.warn("not yet", self.warning, stacklevel=1)
            return super().fit(X, y)

    def make(seed: int) -> Restless:
        made.append(seed)
        return Restless(strategy="prior")

    labels, expected = np.arange(100) // 90, []
    for shuffle in range(3):
        sent = labels[np.argsort(np.random.default_rng((8, shuffle)).permutation(100))]
        expected += [shuffle for end in block_boundaries(100)[:-1] if len(set(sent[:end].tolist())) == 2]
    code = codelength(make, np.zeros((100, 1)), labels, range(100), 2, seed=8)
    assert made == expected and len(code.blocks) == 3 and 6 < len(made) < 21
    Restless.warning = UserWarning
    with pytest.warns(UserWarning, match="not yet"):  # other warnings are not hidden
        codelength(make, np.zeros((100, 1)), labels, range(100), 2)
