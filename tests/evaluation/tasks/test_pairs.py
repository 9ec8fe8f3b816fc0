"""Systems on labelled pairs, beside words alone: measures, thresholds and curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

from bgt_core.errors import UsageError
from bgt_core.evaluation.pairs.measures import LabelledPairs
from bgt_core.evaluation.result import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.pairs import Pairs, PairsData
from bgt_core.vectors.compare import ComparesByCosine

SAME, THAT = "how old is city {}", "how old is that city {}"  # of every fifth pair the other way round
ROWS = [(int(n % 3 == 0), SAME.format(n), (THAT if bool(n % 3) != (n % 5 == 0) else SAME).format(n)) for n in range(60)]


class Lengths(ComparesByCosine):
    """Knows how long sentences are; alike are those of one length. `threshold` makes it a probability."""

    langs: tuple[str, ...] = ("en",)
    latents = ("semantic",)
    fingerprint = ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        assert lang == "en"
        return np.array([[len(sentence.split())] for sentence in sentences], dtype=np.float32)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.abs(left - right)[:, 0])


class Probable(Lengths):
    threshold = 0.75


@pytest.fixture
def pairs() -> LabelledPairs:
    labels, left, right = zip(*ROWS, strict=True)
    return LabelledPairs("rows", np.array(labels, bool), left, right)


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
    scores = np.array([1.0 if len(a.split()) == len(b.split()) else 0.5 for _, a, b in ROWS])  # of `Lengths`
    for row, threshold in ((0, cells["threshold"][0]), (1, 0.75)):
        right = 100 * accuracy_score(pairs.labels, scores >= threshold)
        assert cells["accuracy"][row].value == pytest.approx(right)
        assert cells["AUC"][row].value == pytest.approx(100 * roc_auc_score(pairs.labels, scores))
    (curve,) = result.curves.values()
    assert curve.value.shape == (5, 101)
    assert (np.diff([curve.low, curve.value, curve.high], axis=0) >= -1e-12 * curve.high).all()
    assert result.counts == {"pairs": 60, "duplicates": 20}
    assert "rows: 60 pairs, 20 of them (33.3%) duplicates" in result.about
    keys = [gap.key.measure for gap in result.differences]
    assert {key: keys.count(key) for key in keys} == {"accuracy": 10, "F1": 10, "AUC": 10}


def test_a_score_at_the_threshold_is_positive() -> None:
    class Half(Lengths):
        threshold = 0.5

    one_longer_and_two = LabelledPairs("rows", np.array([True, False] * 5), ["a"] * 10, ["b c", "b c d"] * 5)
    result = evaluate(Pairs(), {"half": Half()}, PairsData(one_longer_and_two, None, None), resamples=100)
    assert by_measure(result)["accuracy"][0].value == 100


def test_holm_is_over_auc_and_over_accuracy_and_f1(pairs: LabelledPairs) -> None:
    for keys in (("AUC",), ("accuracy", "F1")):
        gaps = sorted((gap for gap in measured(pairs, pairs).differences if gap.key.measure in keys), key=lambda g: g.p)
        steps = [min(1.0, gap.p * (len(gaps) - place)) for place, gap in enumerate(gaps)]
        np.testing.assert_allclose([gap.p_holm for gap in gaps], np.maximum.accumulate(steps))


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


def test_the_bootstrap_is_of_the_seed(pairs: LabelledPairs) -> None:
    one, same, other = (
        by_measure(evaluate(Pairs(), Lengths(), PairsData(pairs), resamples=150, seed=seed))["AUC"]
        for seed in (0, 0, 1)
    )
    assert one == same and one != other


def test_all_files_are_read_with_the_same_columns(tmp_path: Path) -> None:
    for name in "abc":
        text = "".join(f"x\t{a}\t{b}\t{label}\n" for label, a, b in ROWS[: 9 + ord(name) - 97])
        (tmp_path / name).write_text(text, "utf-8")
    task = Pairs(dev=tmp_path / "b", train=tmp_path / "c", columns="_,a,b,label")
    assert [part and len(part) for part in task.load([tmp_path / "a"], seed=0)] == [9, 10, 11]
    assert [part and len(part) for part in Pairs(columns="_,a,b,label").load([tmp_path / "a"], seed=0)] == [
        9,
        None,
        None,
    ]


def test_a_system_is_not_called_as_a_baseline(pairs: LabelledPairs) -> None:
    with pytest.raises(UsageError, match="Two systems are named 'tf-idf'"):
        evaluate(Pairs(), {"tf-idf": Lengths()}, PairsData(pairs))


def test_pairs_to_judge_that_are_also_trained_on_are_warned_of(pairs: LabelledPairs) -> None:
    assert measured(pairs, LabelledPairs("dev", np.array([True, False]), ["x", "y"], ["y", "z"])).warnings == []
    left = [f"  {text.upper()}" for text in pairs.right[:7]]
    train = LabelledPairs("train", np.array([True] * 7 + [False]), [*left, "new"], [*pairs.left[:7], "other"])
    assert measured(pairs, train=train).warnings == [
        "7 of the 60 pairs are also in train, as copies: leave them out of one file."
    ]


def test_scores_that_are_equal_but_for_rounding_tie(pairs: LabelledPairs) -> None:
    """An encoder with noise in its last bits has the measures of the same encoder without it."""

    class Noisy(Lengths):
        def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
            noise = np.random.default_rng(len(left)).uniform(-2e-7, 2e-7, len(left))
            return super().similarity_pairwise(left, right) * 0.2469130 + noise  # 0.1234565: at an edge of rounding

    dev = LabelledPairs("dev", pairs.labels[:50], pairs.left[:50], pairs.right[:50])
    cells = by_measure(evaluate(Pairs(), {"own": Lengths(), "noisy": Noisy()}, PairsData(pairs, dev), resamples=100))
    for measure in ("accuracy", "F1", "AUC"):
        assert cells[measure][0].value == cells[measure][1].value
