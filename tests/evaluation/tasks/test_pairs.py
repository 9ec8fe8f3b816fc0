"""Test duplicate detection: thresholds, files of labelled pairs, and measures and baselines as in scikit-learn."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks import pairs as task
from bgt_core.evaluation.tasks.pairs import LabelledPairs, Pairs, PairsData, accuracy, auc, f1, read_labelled

SAME, THAT = "how old is city {}", "how old is that city {}"  # most pairs of a SAME and a THAT have label 0
ROWS = [(int(n % 3 == 0), SAME.format(n), (THAT if bool(n % 3) != (n % 5 == 0) else SAME).format(n)) for n in range(60)]


@pytest.fixture
def pairs() -> LabelledPairs:
    labels, left, right = zip(*ROWS, strict=True)
    return LabelledPairs("rows", np.array(labels, bool), left, right)


def test_baselines_are_cosines_of_scikit_learn(pairs: LabelledPairs) -> None:
    result = evaluate(Pairs(), Lengths(), PairsData(pairs, pairs), resamples=100)
    for name, vectorizer in (("bag of words", CountVectorizer), ("tf-idf", TfidfVectorizer)):
        fitted = vectorizer(token_pattern=r"\w+").fit(list(dict.fromkeys([*pairs.left, *pairs.right])))
        expected = np.diag(cosine_similarity(fitted.transform(pairs.left), fitted.transform(pairs.right)))
        assert result.value(("AUC",), name) == pytest.approx(100 * roc_auc_score(pairs.labels, expected.round(6)))


def test_the_classifier_is_the_minimum_of_the_penalised_loss() -> None:
    """SciPy finds the same minimum of 10 x the log-loss + 1/2 x the squared weights, without the intercept."""
    rng = np.random.default_rng(0)
    left, right = ([" ".join(rng.choice(list("abcd"), 4)) for _ in range(40)] for _ in range(2))
    pairs = LabelledPairs("drawn", rng.random(40) < 0.5, left, right)
    tfidf = TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2)).fit(list(dict.fromkeys([*left, *right])))
    u, v = (tfidf.transform(side).toarray() for side in (left, right))
    features = np.hstack([np.abs(u - v), u * v, np.ones((40, 1))])
    sign = np.where(pairs.labels, 1, -1)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (features @ weights)
        slope = -10 * features.T @ (sign * expit(-margin))
        penalised = np.append(weights[:-1], 0)  # the intercept is not penalised
        return 10 * np.logaddexp(0, -margin).sum() + penalised @ penalised / 2, slope + penalised

    best = minimize(loss, np.zeros(features.shape[1]), jac=True, tol=1e-8).x
    assert task.TfIdfClassifier(pairs)(left, right) == pytest.approx(expit(features @ best), abs=2e-3)


def written(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_is_read_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    plain = read_labelled(written(tmp_path / "a.tsv", ROWS))
    assert (len(plain), plain.left[1]) == (60, "how old is city 1")
    assert plain.labels[:4].tolist() == [True, False, False, True]
    other = written(tmp_path / "b.tsv", [(number, b, label, a, "x") for number, (label, a, b) in enumerate(ROWS)])
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress(other.read_bytes()))
    again = read_labelled(packed, ["_", "b", "label", "a"])
    assert (list(again.left), list(again.right)) == (list(plain.left), list(plain.right))
    assert np.array_equal(again.labels, plain.labels)


@pytest.mark.parametrize(("text", "message"), [
    ("1\ta\tb\n1\ta\n", r"bad\.tsv:2: 2 columns, expected 3: label, a, b"),
    ("1,0\ta\tb\n", r"bad\.tsv:1: the label is '1,0'; expected 1 .* or 0, without a comma"),
    ("1\ta\t \n", r"bad\.tsv:1: an empty sentence"), ("1\ta\tb\n", r"bad\.tsv: 1 of 1 labels are 1"),
    ("", r"bad\.tsv: 0 of 0 labels are 1"),
])  # fmt: skip
def test_errors_name_the_file_and_the_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labelled(tmp_path / "bad.tsv")


@pytest.fixture(params=["all different", "many ties"])
def drawn(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    """200 scores, and labels that correlate with the scores."""
    rng = np.random.default_rng(0)
    labels = rng.random(200) < 0.4
    scores = rng.normal(labels * 0.8, 1)
    return (scores if request.param == "all different" else scores.round(), labels)


def times(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Repeat each value as often as its weight says."""
    return np.repeat(values, weights.astype(int))


def test_measures_equal_scikit_learns_in_every_resample(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    scores, labels = drawn
    weights = np.concatenate([np.ones((1, 200)), resample(np.random.default_rng(1), 200, 5)])
    judged = scores >= 0.5
    got = accuracy(weights, judged, labels), f1(weights, judged, labels), auc(weights, scores, labels)
    for row, weight in enumerate(weights):
        gold = times(weight, labels)
        assert got[0][row] == pytest.approx(accuracy_score(gold, times(weight, judged)), rel=1e-12)
        assert got[1][row] == pytest.approx(f1_score(gold, times(weight, judged)), rel=1e-12)
        assert got[2][row] == pytest.approx(roc_auc_score(gold, times(weight, scores)), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_threshold_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.normal(size=30).round(seed % 3), rng.random(30) < (0.1, 0.5, 0.9)[seed % 3]
    edges = np.concatenate([[-9], np.unique(scores), [9]])
    best = max(((scores >= edge) == labels).mean() for edge in edges)
    threshold = task.best_threshold(scores, labels)
    assert ((scores >= threshold) == labels).mean() == best
    assert np.isfinite(threshold)


class Lengths(ExternalEncoder):
    """An encoder for which sentences are similar if they have the same number of words."""

    def __init__(self) -> None:
        super().__init__("lengths", lambda texts, *_: [[len(text.split())] for text in texts], ("en",))

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.abs(left - right)[:, 0])


class Probable(Lengths):
    """An encoder whose similarity is the probability that two sentences are duplicates, so its threshold is fixed."""

    threshold = 0.75


def measured(test: LabelledPairs, dev: LabelledPairs | None = None, train: LabelledPairs | None = None) -> Result:
    return evaluate(Pairs(), {"own": Lengths(), "sure": Probable()}, PairsData(test, dev, train), resamples=100)


def by_measure(result: Result) -> dict[str, list[Any]]:
    return {key.measure: list(cells) for key, cells in result.scores.items()}


def test_every_system_has_its_measures(pairs: LabelledPairs) -> None:
    result = measured(pairs, pairs, pairs)
    assert result.systems == ["own", "sure", "bag of words", "tf-idf", "tf-idf + logistic regression"]
    cells = by_measure(result)
    assert list(cells) == ["accuracy", "F1", "AUC", "threshold"]
    assert (cells["threshold"][1], cells["threshold"][4]) == (0.75, 0.5)
    scores = np.array([1.0 if len(a.split()) == len(b.split()) else 0.5 for _, a, b in ROWS])  # as in `Lengths`
    for row, threshold in ((0, cells["threshold"][0]), (1, 0.75)):
        right = 100 * accuracy_score(pairs.labels, scores >= threshold)
        assert cells["accuracy"][row].value == pytest.approx(right)
        assert cells["AUC"][row].value == pytest.approx(100 * roc_auc_score(pairs.labels, scores))
    assert "rows: 60 pairs, 20 of them (33.3%) duplicates" in result.about
    keys = [gap.key.measure for gap in result.differences]
    assert {key: keys.count(key) for key in keys} == {"accuracy": 10, "F1": 10, "AUC": 10}


def test_without_a_dev_file_scores_have_no_accuracy_but_probabilities_do(pairs: LabelledPairs) -> None:
    result = measured(pairs)
    assert result.systems == ["own", "sure", "bag of words", "tf-idf"]
    cells = by_measure(result)
    assert cells["threshold"] == [None, 0.75, None, None]
    assert [cell is None for cell in cells["accuracy"]] == [True, False, True, True]
    assert None not in cells["AUC"]
    alone = evaluate(Pairs(), Lengths(), PairsData(pairs), resamples=100)
    assert list(by_measure(alone)) == ["AUC", "threshold"]
    assert alone.table().columns == ["system", "AUC"]
    assert "none without --dev" in alone.about


def test_test_pairs_that_are_also_training_pairs_are_warned_of(pairs: LabelledPairs) -> None:
    assert measured(pairs, LabelledPairs("dev", np.array([True, False]), ["x", "y"], ["y", "z"])).warnings == []
    left = [f"  {text.upper()}" for text in pairs.right[:7]]
    train = LabelledPairs("train", np.array([True] * 7 + [False]), [*left, "new"], [*pairs.left[:7], "other"])
    assert measured(pairs, train=train).warnings == [
        "7 of the 60 pairs are also in train, as copies: leave them out of one file."
    ]
