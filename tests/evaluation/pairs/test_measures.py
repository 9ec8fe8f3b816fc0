"""Words alone, against scikit-learn, by hand, and against scipy's minimum."""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score, roc_curve
from sklearn.metrics.pairwise import cosine_similarity

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.pairs.measures import (
    RATES,
    LabelledPairs,
    TfIdf,
    TfIdfClassifier,
    accuracy,
    auc,
    bag_of_words,
    best_threshold,
    f1,
    read_labelled,
    roc,
)

SAME, THAT = "how old is city {}", "how old is that city {}"  # of every fifth pair the other way round
ROWS = [(int(n % 3 == 0), SAME.format(n), (THAT if bool(n % 3) != (n % 5 == 0) else SAME).format(n)) for n in range(60)]


@pytest.fixture
def pairs() -> LabelledPairs:
    labels, left, right = zip(*ROWS, strict=True)
    return LabelledPairs("rows", np.array(labels, bool), left, right)


def test_a_bag_of_words_is_the_cosine_of_counts(pairs: LabelledPairs) -> None:
    counts = CountVectorizer(token_pattern=r"\w+").fit([*pairs.left, *pairs.right])
    expected = np.diag(cosine_similarity(counts.transform(pairs.left), counts.transform(pairs.right)))
    np.testing.assert_allclose(bag_of_words(pairs), expected)


def test_tfidf_and_logistic_regression_learn_which_word_tells() -> None:
    rows = [row for number, row in enumerate(ROWS) if number % 5]
    train, test = (
        LabelledPairs("part", np.array([row[0] for row in part], bool), *zip(*(row[1:] for row in part), strict=True))
        for part in (rows[:24], rows[24:])
    )
    classifier = TfIdfClassifier(train)
    probability = classifier(test)
    assert ((probability >= classifier.threshold) == test.labels).all()
    turned = LabelledPairs("turned", test.labels, test.right, test.left)
    np.testing.assert_allclose(classifier(turned), probability)


def test_tfidf_by_hand() -> None:
    """Two different sentences: "a" is in both, "b" and "c" are in one each, which has an idf of ln(3 / 2) + 1."""
    pairs = LabelledPairs("hand", np.array([True, False]), ["A b", "a, c"], ["A b", "A b"])
    rare = math.log(3 / 2) + 1
    assert TfIdf(pairs)(pairs).tolist() == pytest.approx([1, 1 / (1 + rare**2)])
    assert TfIdf(pairs, runs=2)(pairs).tolist() == pytest.approx([1, 1 / (1 + 2 * rare**2)])  # and the run of two
    assert TfIdf(pairs).vectors(["d e"]).nnz == 0


def test_the_classifier_is_the_minimum_of_the_penalised_loss() -> None:
    """By scipy: 10 times the sum of log-losses plus half the squared weights, over differing and shared words."""
    rng = np.random.default_rng(0)
    left, right = ([" ".join(rng.choice(list("abcd"), 4)) for _ in range(40)] for _ in range(2))
    pairs = LabelledPairs("drawn", rng.random(40) < 0.5, left, right)
    tfidf = TfIdf(pairs, runs=2)
    u, v = (tfidf.vectors(side).toarray() for side in (left, right))
    features = np.hstack([np.abs(u - v), u * v, np.ones((40, 1))])
    sign = np.where(pairs.labels, 1, -1)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (features @ weights)
        slope = -10 * features.T @ (sign * expit(-margin))
        penalised = np.append(weights[:-1], 0)  # not the intercept
        return 10 * np.logaddexp(0, -margin).sum() + penalised @ penalised / 2, slope + penalised

    best = minimize(loss, np.zeros(features.shape[1]), jac=True, tol=1e-8).x
    assert TfIdfClassifier(pairs)(pairs) == pytest.approx(expit(features @ best), abs=2e-3)  # where searches end


FILE_ROWS = [(int(n % 3 == 0), f"how old is city {n}", f"how old is that city {n}") for n in range(60)]


def written(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_is_read_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    plain = read_labelled(written(tmp_path / "a.tsv", FILE_ROWS))
    assert (len(plain), plain.left[1], plain.labels[:4].tolist()) == (
        60,
        "how old is city 1",
        [True, False, False, True],
    )
    other = written(tmp_path / "b.tsv", [(number, b, label, a, "x") for number, (label, a, b) in enumerate(FILE_ROWS)])
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress(other.read_bytes()))
    again = read_labelled(packed, ["_", "b", "label", "a"])
    assert (list(again.left), list(again.right)) == (list(plain.left), list(plain.right))
    assert np.array_equal(again.labels, plain.labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\tb\n1\ta\n", r"bad\.tsv:2: 2 columns, expected 3: label, a, b"),
        ("1\ta\tb\n\n", r"bad\.tsv:2: the line is empty; remove it"),
        ("x\n", r"bad\.tsv:1: 1 column, expected 3"),
        ("label\ta\tb\n", r"bad\.tsv:1: the label is 'label'; expected 1"),
        ("1,0\ta\tb\n", r"bad\.tsv:1: the label is '1,0'; expected 1 .* or 0, without a comma"),
        ("1\ta\tb\n0.5\ta\tb\n", r"bad\.tsv:2: the label is '0\.5'"),
        ("1\ta\t \n", r"bad\.tsv:1: an empty sentence"),
        ("1\ta\tb\n1\tc\td\n", r"bad\.tsv: 2 of 2 labels are 1"),
        ("", r"bad\.tsv: 0 of 0 labels are 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labelled(tmp_path / "bad.tsv")


def test_other_columns_and_absent_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="columns label,a: expected label, a and b"):
        read_labelled(tmp_path / "a.tsv", ["label", "a"])
    with pytest.raises(NotFound, match=r"a\.tsv"):
        read_labelled(tmp_path / "a.tsv")
    with pytest.raises(DataError, match="1 labels, 2 left"):
        LabelledPairs("x", np.array([True]), ["a", "b"], ["a"])


@pytest.fixture(params=["all different", "many ties"])
def drawn(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """Scores that know something of 200 labels."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.4
    scores = rng.normal(labels * 0.8, 1)
    return (scores if request.param == "all different" else scores.round(), labels)


def times(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A resample written out."""
    return np.repeat(values, weights.astype(int))


def test_each_is_that_of_scikit_learn_in_every_resample(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = drawn
    weights = np.concatenate([np.ones((1, 200)), resample(np.random.default_rng(1), 200, 5)])
    judged = scores >= 0.5
    got = accuracy(weights, judged, labels), f1(weights, judged, labels), auc(weights, scores, labels)
    for row, weight in enumerate(weights):
        gold = times(weight, labels)
        assert got[0][row] == pytest.approx(accuracy_score(gold, times(weight, judged)), rel=1e-12)
        assert got[1][row] == pytest.approx(f1_score(gold, times(weight, judged)), rel=1e-12)
        assert got[2][row] == pytest.approx(roc_auc_score(gold, times(weight, scores)), rel=1e-12)


def test_the_curve_is_that_of_scikit_learn(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = drawn
    weights = np.concatenate([np.ones((1, 200)), resample(np.random.default_rng(1), 200, 5)])
    for weight, curve in zip(weights, roc(weights, scores, labels), strict=True):
        false, true, _ = roc_curve(times(weight, labels), times(weight, scores), drop_intermediate=False)
        assert curve == pytest.approx(np.interp(RATES, false, true), rel=1e-12)
        assert (np.diff(curve) >= 0).all() and curve[-1] == 1
        assert np.trapezoid(curve, RATES) == pytest.approx(auc(weight[None], scores, labels)[0], abs=0.01)


def test_by_hand() -> None:
    scores, labels = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])
    one = np.ones((1, 4))
    assert auc(one, scores, labels)[0] == (2 + 1.5) / 4  # the tie is half a win
    assert f1(one, scores >= 0.4, labels)[0] == 2 * 2 / (2 * 2 + 1)
    curve = roc(one, scores, labels)[0]
    assert (curve[0], curve[25], curve[50], curve[100]) == (0.5, 0.75, 1, 1)
    assert best_threshold(scores, labels) == pytest.approx(0.25)  # as good as 0.6, and lower


def test_what_can_not_be_measured_is_chance() -> None:
    scores, labels = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    weights = np.array([[2.0, 0.0, 1.0]])  # no pair that is not a duplicate was drawn
    assert auc(weights, scores, labels)[0] == 0.5
    np.testing.assert_array_equal(roc(weights, scores, labels)[0], RATES)
    assert f1(np.array([[0.0, 3.0, 0.0]]), np.zeros(3, bool), labels)[0] == 0


@pytest.mark.parametrize("seed", range(6))
def test_no_other_threshold_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=30).round(seed % 3), rng.random(30) < (0.1, 0.5, 0.9)[seed % 3]
    edges = np.concatenate([[-9], np.unique(scores), [9]])
    best = max(((scores >= edge) == labels).mean() for edge in edges)
    threshold = best_threshold(scores, labels)
    assert ((scores >= threshold) == labels).mean() == best
    assert np.isfinite(threshold)


def test_all_or_none_may_be_best() -> None:
    scores = np.array([0.1, 0.2, 0.3])
    assert (scores >= best_threshold(scores, np.array([True, True, True]))).all()
    assert not (scores >= best_threshold(scores, np.array([False, False, False]))).any()


def test_one_pair_of_each_kind_is_enough_and_equals_are_taken_for_the_same() -> None:
    one, right = np.ones((1, 2)), np.array([False, True])
    assert auc(one, np.array([1.0, 2.0]), right) == 1 and auc(one, np.array([2.0, 1.0]), right) == 0
    assert best_threshold(np.array([0.5, 0.5]), right) == 0.5  # either way one of two is right
    np.testing.assert_array_equal(roc(one, np.array([1.0, 2.0]), right), np.ones((1, 101)))
    np.testing.assert_array_equal(roc(one, np.array([2.0, 1.0]), right), [[0.0] * 100 + [1.0]])
