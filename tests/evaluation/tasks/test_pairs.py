"""Labelled pairs: files and what is wrong with them, systems beside words alone, and `bgt pairs`."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.pairs import LabelledPairs, evaluate, read_labelled
from bgt_core.evaluation.pairs.baselines import TfIdf, TfIdfClassifier, bag_of_words
from bgt_core.vectors.compare import ComparesByCosine

Bgt = Callable[..., tuple[int, str, str]]
SAME, THAT = "how old is city {}", "how old is that city {}"  # of every fifth pair the other way round
ROWS = [(int(n % 3 == 0), SAME.format(n), (THAT if bool(n % 3) != (n % 5 == 0) else SAME).format(n)) for n in range(60)]


class Lengths(ComparesByCosine):
    """Knows how long sentences are; alike are those of one length. `threshold` makes it a probability."""

    langs: tuple[str, ...] = ("en",)
    latents = ("semantic",)
    fingerprint = ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return np.array([[len(sentence.split())] for sentence in sentences], dtype=np.float32)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.abs(left - right)[:, 0])


class Probable(Lengths):
    threshold = 0.75


@pytest.fixture
def pairs() -> LabelledPairs:
    labels, left, right = zip(*ROWS, strict=True)
    return LabelledPairs("rows", np.array(labels, bool), left, right)


def written(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_is_read_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    plain = read_labelled(written(tmp_path / "a.tsv", ROWS))
    assert (len(plain), plain.left[1], plain.labels[:4].tolist()) == (
        60,
        "how old is city 1",
        [True, False, False, True],
    )
    other = written(tmp_path / "b.tsv", [(number, b, label, a, "x") for number, (label, a, b) in enumerate(ROWS)])
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress(other.read_bytes()))
    again = read_labelled(packed, ["_", "b", "label", "a"])
    assert (list(again.left), list(again.right)) == (list(plain.left), list(plain.right))
    assert np.array_equal(again.labels, plain.labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\tb\n1\ta\n", r"bad\.tsv:2: 2 columns, expected 3: label, a, b"),
        ("label\ta\tb\n", r"bad\.tsv:1: the label is 'label'; expected 1"),
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
    with pytest.raises(UsageError, match="`columns` label,a: expected label, a and b"):
        read_labelled(tmp_path / "a.tsv", ["label", "a"])
    with pytest.raises(NotFound, match=r"a\.tsv"):
        read_labelled(tmp_path / "a.tsv")
    with pytest.raises(DataError, match="1 labels, 2 left"):
        LabelledPairs("x", np.array([True]), ["a", "b"], ["a"])


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
    np.testing.assert_allclose(TfIdfClassifier(pairs)(pairs), expit(features @ best), atol=2e-3)


def test_every_system_has_its_measures(pairs: LabelledPairs) -> None:
    table = evaluate({"own": Lengths(), "sure": Probable()}, pairs, dev=pairs, train=pairs, resamples=100)
    assert list(table.systems) == ["own", "sure", "bag of words", "tf-idf", "tf-idf + logistic regression"]
    assert list(table.measures) == ["accuracy", "F1", "AUC"]
    for name, threshold, *cells in zip(table.systems, table.thresholds, *table.measures.values(), strict=True):
        scores = table.scores[name]
        assert cells[0].value == pytest.approx(100 * accuracy_score(pairs.labels, scores >= threshold)), name
        assert cells[2].value == pytest.approx(100 * roc_auc_score(pairs.labels, scores)), name
        assert all(cell.low <= cell.value <= cell.high for cell in cells), name
        curve = table.curves[name]
        assert (curve.low <= curve.true + 1e-9).all() and (curve.true <= curve.high + 1e-9).all()
    assert table.thresholds[1] == 0.75 and table.thresholds[4] == 0.5
    assert (table.pairs, table.duplicates) == (60, 20)
    keys = [gap.key for gap in table.differences]
    assert {key: keys.count(key) for key in keys} == {"accuracy": 10, "F1": 10, "AUC": 10}


def test_without_a_dev_file_scores_have_no_accuracy_but_probabilities_do(pairs: LabelledPairs) -> None:
    table = evaluate({"own": Lengths(), "sure": Probable()}, pairs, resamples=100)
    assert list(table.systems) == ["own", "sure", "bag of words", "tf-idf"]
    assert table.thresholds == [None, 0.75, None, None]
    assert [cell is None for cell in table.measures["accuracy"]] == [True, False, True, True]
    assert None not in table.measures["AUC"]
    alone = evaluate(Lengths(), pairs, resamples=100)
    assert list(alone.measures) == ["AUC"]
    assert "none without a dev file" in alone.about


def test_the_bootstrap_is_of_the_seed_and_may_be_cut_into_chunks(
    pairs: LabelledPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, same, other = (evaluate(Lengths(), pairs, resamples=150, seed=seed).measures["AUC"] for seed in (0, 0, 1))
    assert one == same and one != other
    monkeypatch.setattr("bgt_core.evaluation.pairs.bench.MAX_WEIGHTS", 60 * 7)
    cell, chunked = one[0], evaluate(Lengths(), pairs, resamples=150).measures["AUC"][0]
    assert cell is not None and chunked is not None
    assert chunked.value == cell.value and chunked.low == pytest.approx(cell.low, abs=8)


def test_what_can_not_score_is_said_before_it_embeds(pairs: LabelledPairs) -> None:
    with pytest.raises(UsageError, match="own: There is no latent 'language'"):
        evaluate({"own": Lengths()}, pairs, latent="language")
    with pytest.raises(UsageError, match=r"own: .* no language 'fr'"):
        evaluate({"own": Lengths()}, pairs, lang="fr")
    with pytest.raises(UsageError, match="Two systems are called 'tf-idf'"):
        evaluate({"tf-idf": Lengths()}, pairs)
    with pytest.raises(UsageError, match="`resamples` 9"):
        evaluate(Lengths(), pairs, resamples=9)


def test_the_command_prints_a_table_and_writes_curves(bgt: Bgt, saved: Path, tmp_path: Path) -> None:
    file, roc = written(tmp_path / "a.tsv", ROWS), tmp_path / "roc.csv"
    code, out, err = bgt("pairs", file, "--dev", file, "--train", file, "--model", f"mine={saved}", "--distance", "w2",
                         "--distance", "cosine", "--latent", "semantic", "--roc", roc, "--resamples", 100,
                         "--device", "cpu", "--compare")  # fmt: skip
    assert code == 0, err
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["system", "accuracy", "F1", "AUC", "threshold"]
    names = ["mine w2 semantic", "mine cosine semantic", "bag of words", "tf-idf", "tf-idf + logistic regression"]
    assert [row[0] for row in rows[:5]] == names
    assert len(rows) == 5 + 2 + 3 * 10
    assert "60 pairs, 20 of them (33.3%) duplicates" in err
    curves = list(csv.DictReader(roc.read_text("utf-8").splitlines()))
    assert len(curves) == 5 * 101
    assert float(curves[100]["true positive rate"]) == 1


def test_the_command_prints_one_document_of_json(bgt: Bgt, tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", ROWS)
    code, out, err = bgt("pairs", file, "--model", "baseline:words", "--json", "--resamples", 100)
    assert code == 0, err
    document = json.loads(out)
    assert (document["schema"], document["pairs"], document["duplicates"]) == ("bgt-pairs/1", 60, 20)
    own = document["systems"][0]
    assert own["system"] == "baseline:words" and own["threshold"] is None and "accuracy" not in own
    assert own["AUC"]["ci_low"] <= own["AUC"]["value"] <= own["AUC"]["ci_high"]
    assert len(own["roc"]["true_positive_rate"]) == len(own["roc"]["false_positive_rate"]) == 101


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("absent.tsv", 3, "absent.tsv"),
        ("a.tsv --columns a,b", 2, "--columns a,b: expected label, a and b"),
        ("a.tsv --columns a,label,b", 4, "a.tsv:1: the label is 'how old is city 0'"),
        ("a.tsv --dev absent.tsv", 3, "absent.tsv"),
        ("a.tsv --resamples 3", 2, "--resamples 3"),
        ("a.tsv --latent manner", 2, "There is no latent 'manner'"),
        ("a.tsv --distance w2", 2, "this encoder is not ours"),
        ("a.tsv --roc no/roc.csv", 3, "there is no folder"),
    ],
)
def test_errors_take_a_line(
    bgt: Bgt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.tsv", ROWS)
    got, out, err = bgt("pairs", *arguments.split(), "--model", "baseline:words")
    assert (got, out) == (code, ""), err
    assert message in err
