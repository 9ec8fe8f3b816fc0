"""Measuring with probes whose answers are known beforehand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bgt_core.evaluation.bootstrap import wilson
from bgt_core.vectors.linear_probe import STRENGTHS, LinearProbe
from probes import ProbeConfig
from probes.classifiers.mlp import MLPProbe
from probes.measures import language, senteval_protocol
from probes.measures.language import language_probe_accuracy
from probes.measures.measure import embed_items, fit, measure, probe_factory
from probes.measures.senteval_protocol import senteval_score
from probes.measures.study import Study
from probes.task import Items
from tests.close import FLOAT32, assert_close


class Told:
    """A vector is the probability of label 1; labels 0 and 1 were seen, and nothing is learnt."""

    def __init__(self, seed: int, classes: Sequence[int] = (0, 1)):
        self.seed, self.classes_ = seed, np.array(classes)
        if seed == 1:
            self.strength_ = 7.0

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
    assert math.isnan(measured.strength) and measured.unconverged == 2
    assert measured.bits.dtype == measured.saved.dtype == np.float32
    slow, done = (measure(lambda seed, kind=kind: Told(kind), [vectors], LABELS, [CUT]) for kind in (1, 0))
    assert (slow.strength, slow.unconverged, done.unconverged) == (7.0, 1, 0)


def test_dev_accuracy_is_the_mean_over_seeds_and_a_label_never_seen_has_a_code() -> None:
    vectors = np.array([0.5, 0.5, 0.5, 0.5, 0.25, 0.75, 0.25, 0.75])[:, None]
    labels = np.array([0, 0, 2, 2, 0, 2, 1, 2])
    measured = measure(lambda seed: Told(0, (0, 2)), [vectors], labels, [CUT, (CUT[0], np.array([4, 6, 7]), CUT[2])])
    assert measured.dev == pytest.approx((1 + 2 / 3) / 2)
    assert measured.predicted[0, 0, 6:].tolist() == [0, 2]
    assert measured.bits[0, 0, 6:] == pytest.approx([-math.log2(1 / 7), -math.log2((4 * 0.75 + 1) / 7)])
    assert_close(measured.saved[0, 0, 6], 0.0, FLOAT32, scale=1)


def test_a_probe_is_given_train_and_dev() -> None:
    vectors = np.arange(8.0)[:, None] / 10
    for seed, converged in ((0, True), (1, False)):
        probe, done = fit(Told(seed), vectors, LABELS, CUT[0], CUT[1])
        assert done is converged
        train, labels, (dev, dev_labels) = probe.given
        assert (train.ravel() * 10).tolist() == [0, 1, 2, 3] and labels.tolist() == [0, 0, 0, 1]
        assert (dev.ravel() * 10).tolist() == [4, 5] and dev_labels.tolist() == [0, 1]


def test_other_warnings_of_a_probe_are_not_taken_for_its_convergence() -> None:
    vectors = np.arange(8.0)[:, None] / 10
    with pytest.raises(UserWarning, match="not yet"):  # pytest makes an error of it
        fit(Told(2), vectors, LABELS, CUT[0], CUT[1])


def test_probes_have_their_units_seed_and_penalty() -> None:
    linear, chosen = probe_factory("linear")(3), probe_factory("linear", 4.0)(3)
    assert type(linear) is LinearProbe and linear.strengths == STRENGTHS and linear.random_state == 3
    assert chosen.strengths == (0.25,) and chosen.random_state == 3
    network, chosen = probe_factory("mlp7")(5), probe_factory("mlp7", 4.0)(5)
    assert type(network) is MLPProbe and network.get_params()["random_state"] == 5
    assert 7 in network.get_params().values() and chosen.strengths == (0.25,)


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


@pytest.mark.parametrize(("task", "probe", "hidden"), [("toy", "mlp9", 9), ("toy", "linear", 0),
                                                       ("word-content", "mlp9", 0)])  # fmt: skip
def test_senteval_is_given_each_split_by_tokens_and_label(
    task: str, probe: str, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ["a b c", "a", "dd", "a b", "e f", "g", "h  h", "i"]
    seen: list[Any] = []

    def classify(*given: Any) -> Any:
        seen.extend(given)
        return SimpleNamespace(predicted=np.array([0, 1]), penalty=0.01)

    monkeypatch.setattr(senteval_protocol, "split_classify", classify)
    labels = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    encoder = Heard()
    made = study(sentences, labels, task=task)
    score, kept = senteval_score(encoder, made, "own", ProbeConfig(probe=probe, level=0.9))
    assert encoder.asked == [(sentences, "en", "own")]
    train, dev, test, protocol = seen
    # by tokens, then label: "dd" (label 0), "a" (1), "a b" (1), "a b c" (0); "g", "e f"; "i", "h  h"
    assert train[0][:, 0].tolist() == [2, 1, 3, 5] and train[1].tolist() == [0, 1, 1, 0]
    assert dev[0][:, 0].tolist() == [1, 3] and dev[1].tolist() == [1, 0]
    assert test[0][:, 0].tolist() == [1, 4] and test[1].tolist() == [0, 1]
    assert protocol.hidden == hidden
    assert (score.task, score.lang, score.latent) == (task, "en", "own")
    assert (score.n_train, score.n_test, score.classes, score.accuracy, score.sd) == (4, 2, 2, 1.0, 0.0)
    assert (score.ci_low, score.ci_high) == pytest.approx(wilson(2, 2, 0.9))
    assert score.probe == f"senteval, {hidden} hidden units, L2 0.01"
    assert kept.labels.tolist() == [[[-1] * 6 + [1, 0]]] and kept.labels.dtype == np.int32
    assert kept.bits.shape == (1, 1, 8) and np.isnan(kept.bits).all() and kept.bits.dtype == np.float32
    assert kept.pvi.shape == (8,) and np.isnan(kept.pvi).all()


def test_languages_are_told_on_the_first_fold_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 of 10 sentences of fold 0 look like the other language; the 10 of fold 1 do too, and are far out."""
    left, right = np.full((25, 1), -1.0), np.ones((25, 1))
    left[[0, 5]], right[10] = 1.0, -1.0
    left[1::5], right[1::5] = 1_000.0, -1_000.0
    seen: list[Any] = []

    def watched(probe: Any, vectors: np.ndarray, labels: np.ndarray, train: np.ndarray, dev: np.ndarray) -> Any:
        seen.append((type(probe), train.copy(), dev.copy()))
        return fit(probe, vectors, labels, train, dev)

    monkeypatch.setattr(language, "fit", watched)
    accuracy, low, high = language_probe_accuracy(left, right)
    assert accuracy == 0.7 and (low, high) == pytest.approx(wilson(7, 10))
    ((kind, train, dev),) = seen
    line = np.tile(np.arange(25), 2)
    assert kind is LinearProbe and (dev == (line % 5 == 1)).all() and (train == (line % 5 >= 2)).all()


def test_a_probe_learns_from_the_training_items_and_is_chosen_by_the_development_items() -> None:
    vectors, made = np.arange(8.0)[:, None] / 10, []
    measure(lambda seed: made.append(Told(seed)) or made[-1], [vectors], LABELS, [CUT])
    given, labels, dev = made[0].given
    for got, expected in ((given, vectors[:4]), (labels, LABELS[:4]), (dev[0], vectors[4:6]), (dev[1], LABELS[4:6])):
        np.testing.assert_array_equal(got, expected)
