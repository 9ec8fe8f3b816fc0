"""Probes on embedders whose right scores are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.pipeline import Pipeline

from bgt_core.errors import BadInput
from probes.classifier import logistic, predict
from probes.result import ProbeResult, Row
from probes.run import run_probe
from probes.significance import mcnemar, paired_bootstrap, wilson
from probes.tasks.length import words

SENTENCES = [f"Le mot {number} est " + "très " * (number % 6) + "long." for number in range(360)]


class Fake:
    """The semantic latent holds the number of words; the language latent says nothing."""

    langs = ("en", "fr")
    latents = ("semantic", "language")

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        told = np.eye(12, dtype=np.float32)[[words(sentence) for sentence in sentences]]
        return told if latent == "semantic" else np.ones((len(sentences), 4), dtype=np.float32)


def by_name(result: ProbeResult) -> dict[str, Row]:
    return {row.latent: row for row in result.rows}


@pytest.fixture(scope="module")
def result() -> ProbeResult:
    return run_probe(Fake(), "length", "fr", SENTENCES, seeds=2)


def test_a_latent_that_holds_the_label_is_right_every_time(result: ProbeResult) -> None:
    row = by_name(result)["semantic"]
    assert (row.accuracy, row.ci_high, row.sd, row.note) == (1.0, 1.0, 0.0, "")
    assert (row.classes, row.n_test, row.n_train) == (6, 72, 288)
    assert row.ci_low == pytest.approx(binomtest(72, 72).proportion_ci(method="wilson").low)


def test_a_latent_that_says_nothing_is_at_chance_and_says_so(result: ProbeResult) -> None:
    rows = by_name(result)
    assert rows["language"].accuracy == rows["majority"].accuracy
    assert "not separable from majority" in rows["language"].note
    assert rows["majority"].accuracy < 0.25


def test_the_gap_of_two_latents_is_on_the_same_items(result: ProbeResult) -> None:
    gap, rows = result.difference, by_name(result)
    assert gap.points == pytest.approx(100 * (rows["semantic"].accuracy - rows["language"].accuracy))
    assert 0 < gap.ci_low <= gap.points <= gap.ci_high <= 100
    assert gap.mcnemar_p < 1e-6


def test_baselines_are_in_the_table_and_the_length_baseline_knows_length(result: ProbeResult) -> None:
    rows = by_name(result)
    assert set(rows) == {"semantic", "language", "majority", "length", "word 1-2-grams"}
    assert rows["length"].accuracy > 0.95
    assert set(by_name(run_probe(Fake(), "length", "fr", SENTENCES, baselines=False, seeds=1))) == {
        "semantic",
        "language",
    }


def test_a_latent_below_a_baseline_says_so() -> None:
    class Weak(Fake):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.array([[words(sentence) > 6] for sentence in sentences], dtype=np.float32)

    row = by_name(run_probe(Weak(), "length", "fr", SENTENCES, latents=["language"], seeds=2))["language"]
    assert row.note in ("below length", "below word 1-2-grams")


def test_the_same_seed_gives_the_same_result(result: ProbeResult) -> None:
    assert run_probe(Fake(), "length", "fr", SENTENCES, seeds=2) == result


def test_gender_of_built_in_sentences_at_chance_is_not_separable() -> None:
    class Constant(Fake):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.zeros((len(sentences), 2), dtype=np.float32)

    found = run_probe(Constant(), "gender", "fr", latents=["language"], max_items=600, seeds=2)
    rows = by_name(found)
    assert rows["language"].accuracy == rows["majority"].accuracy == 0.5
    assert rows["language"].note == "not separable from majority"
    assert rows["word 1-2-grams"].accuracy > 0.6  # seen articles and nouns
    assert found.difference is None


def test_max_items_and_rare_labels_are_counted_out() -> None:
    found = run_probe(Fake(), "length", "fr", SENTENCES, max_items=260, seeds=1, baselines=False)
    assert found.left_out == 100
    assert found.rows[0].n_test == 26
    rare = SENTENCES[:300] + ["a, b, c, d."] * 3
    punctuated = [text + "!" * (place % 2) for place, text in enumerate(rare)]
    assert run_probe(Fake(), "punctuation", "fr", punctuated, seeds=1, baselines=False).rows[0].classes == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lang": "es"}, "Model is en-fr; --lang es needs a model trained with 'es'"),
        ({"latents": ["meaning"]}, "There is no latent 'meaning'; choose from semantic, language"),
        ({"latents": ["semantic", "semantic"]}, "different latents"),
        ({"seeds": 11}, "choose 1 to 10"),
        ({"ci": 95.0}, "between 0 and 1"),
        ({"sentences": SENTENCES[:50]}, "Task 'length' got 0 items with 0 labels; it needs 200 and 2"),
        ({"sentences": []}, "got 0 items"),
    ],
)
def test_what_cannot_be_probed_is_said(arguments: Any, message: str) -> None:
    given = {"task": "length", "lang": "fr", "sentences": SENTENCES} | arguments
    with pytest.raises(BadInput, match=message):
        run_probe(Fake(), **given)


@pytest.mark.parametrize(("right", "n", "level"), [(0, 10, 0.95), (5, 10, 0.9), (526, 1000, 0.95), (9999, 10000, 0.99)])
def test_wilson_is_scipys(right: int, n: int, level: float) -> None:
    expected = binomtest(right, n).proportion_ci(confidence_level=level, method="wilson")
    assert wilson(right, n, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_the_papers_gender_scores_tells_them_from_chance() -> None:
    assert wilson(5_260, 10_000)[0] > 0.5
    assert wilson(5_070, 10_000)[0] < 0.5


def test_mcnemar_counts_the_items_only_one_gets_right() -> None:
    first = np.array([True] * 12 + [False] * 3 + [True] * 50)
    second = np.array([False] * 12 + [True] * 3 + [True] * 50)
    assert mcnemar(first, second) == pytest.approx(binomtest(12, 15).pvalue)
    assert mcnemar(first, first) == 1.0


def test_bootstrap_agrees_with_the_normal_interval_and_widens_with_groups() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(4_000) < 0.7, rng.random(4_000) < 0.6
    gain = first.astype(float) - second
    half = 1.96 * gain.std() / np.sqrt(len(gain))
    low, high = paired_bootstrap(first, second, range(4_000))
    assert (low, high) == pytest.approx((gain.mean() - half, gain.mean() + half), abs=0.003)
    twice = paired_bootstrap(np.repeat(first, 2), np.repeat(second, 2), np.repeat(np.arange(4_000), 2))
    assert twice[1] - twice[0] == pytest.approx(high - low, rel=0.1)  # copies add nothing


def test_a_probe_that_stops_early_says_so_and_test_labels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(300, 5)), np.array(["a", "b"] * 150)
    split = (range(200), range(200, 250), range(250, 300))
    before, _ = predict(logistic, inputs, labels, split)
    labels[250:] = "a"
    after, converged = predict(logistic, inputs, labels, split)
    assert (before == after).all()
    assert converged

    def stopped(strength: float) -> Pipeline:
        probe = logistic(strength)
        return probe.set_params(logisticregression__max_iter=1, logisticregression__tol=1e-12)

    assert predict(stopped, inputs, labels, split)[1] is False
