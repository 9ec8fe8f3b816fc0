"""Probes on embedders with known scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import probes
from bgt_core.errors import BgtError, UsageError
from probes import ProbeConfig
from probes.classifiers.senteval import SentEval, split_classify
from probes.measures.study import cuts_of
from probes.result import ProbeResult, ProbeScore
from probes.task import Items, count_words
from probes.tasks import TASKS

SENTENCES = [f"Le mot {number} est " + "très " * (number % 6) + "long." for number in range(360)]


class Fake:
    """The semantic latent holds the number of words; the language latent holds nothing."""

    langs = ("en", "fr")
    latents = ("semantic", "language")

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        vectors = np.eye(12, dtype=np.float32)[[count_words(sentence) for sentence in sentences]]
        return vectors if latent == "semantic" else np.ones((len(sentences), 4), dtype=np.float32)


def by_name(result: ProbeResult) -> dict[str, ProbeScore]:
    return {row.latent: row for row in result.rows}


@pytest.fixture(scope="module")
def result() -> ProbeResult:
    return probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=2))


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
    assert gap.p < 0.05 and (gap.first, gap.second) == ("semantic", "language")
    assert [(each.first, each.second) for each in result.over_majority] == [
        ("semantic", "majority"),
        ("language", "majority"),
    ]
    assert [(each.first, each.second) for each in result.over_baseline] == [
        ("semantic", "length"),
        ("language", "length"),
    ]
    assert (result.seeds, result.seed, result.resamples, result.left_out) == (2, 0, 2_000, 0)


def test_baselines_are_in_the_table_and_the_length_baseline_knows_length(result: ProbeResult) -> None:
    rows = by_name(result)
    assert set(rows) == {
        "semantic",
        "language",
        "majority",
        "length",
        "word 1-2-grams",
        "character 3-5-grams",
    }
    assert rows["length"].accuracy > 0.95
    without = probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=1, baselines=False))
    assert set(by_name(without)) == {"semantic", "language"}


def test_max_items_and_rare_labels_are_counted_out() -> None:
    config = ProbeConfig(max_items=260, seeds=1, baselines=False)
    outcome = probes.run(Fake(), "length", SENTENCES, lang="fr", config=config)
    assert outcome.left_out == 100
    assert outcome.rows[0].n_test == 26
    rare = SENTENCES[:300] + ["a, b, c, d."] * 3
    punctuated = [text + "!" * (place % 2) for place, text in enumerate(rare)]
    config = ProbeConfig(seeds=1, baselines=False)
    assert probes.run(Fake(), "punct-num", punctuated, lang="fr", config=config).rows[0].classes == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lang": "es"}, "lang es: the model has en, fr"),
        ({"latents": ["meaning"]}, "latents 'meaning': choose from semantic, language"),
        ({"latents": ["semantic", "semantic"]}, "latents must be one or more different latents"),
        (
            {"lang": "en-fr", "latents": ["language"]},
            "latents language: the latents of",
        ),
        ({"sentences": SENTENCES[:50]}, "Task 'length' got 0 items with 0 labels; it needs at least 140 and 2"),
        ({"sentences": []}, "got 0 items"),
    ],
)
def test_what_cannot_be_probed_is_said(arguments: Any, message: str) -> None:
    given = {"task": "length", "lang": "fr", "sentences": SENTENCES} | arguments
    with pytest.raises(BgtError, match=message):
        probes.run(Fake(), **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 11}, "^seeds 11: choose 1 to 10"),
        ({"resamples": 99}, "^resamples 99 must be at least 100"),
        ({"max_items": 139}, "^max_items 139 must be at least 140"),
        ({"probe": "mlp0"}, "^probe mlp0: choose linear, or mlp50"),
    ],
)
def test_options_that_mean_nothing_name_the_parameter(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ProbeConfig(**options)


class Other(Fake):
    """An encoder from another training, whose vectors are 0 for every second item."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        vectors = super().embed(sentences, lang=lang, latent=latent)
        return vectors * (np.arange(len(vectors)) % 2)[:, None]


def test_reference_encoders_are_rows_to_beat() -> None:
    outcome = probes.run(
        Fake(),
        "length",
        SENTENCES,
        lang="fr",
        latents=["language"],
        references={"untrained": [Other(), Other(), Fake()]},
        config=ProbeConfig(seeds=2),
    )
    row = by_name(outcome)["untrained"]
    assert (row.encoders, row.probe) == (3, "linear")
    low = (3 * row.accuracy - 1.0) / 2  # the accuracy of the other two; one encoder is always right
    assert row.encoder_sd == pytest.approx(np.std([low, low, 1.0], ddof=1))
    assert row.boot_low < row.ci_low and row.ci_high < row.boot_high  # three encoders tell little about a new one
    assert outcome.predictions["untrained"].labels.shape == (3, 2, 360)
    assert row.accuracy > by_name(outcome)["language"].accuracy
    (gap,) = outcome.over_baseline
    assert (gap.first, gap.second) == ("language", "length")
    assert gap.ci_high < 0


def test_v_information_is_the_entropy_of_labels_that_are_told_and_nothing_of_others(result: ProbeResult) -> None:
    rows = by_name(result)
    assert rows["semantic"].information == pytest.approx(np.log2(6), abs=0.1)
    assert rows["language"].information == pytest.approx(0.0, abs=0.01)
    assert abs(rows["majority"].information) < 1e-5 * np.log2(6)


def test_each_prediction_is_kept_beside_its_item(result: ProbeResult) -> None:
    kept, labels = result.predictions["semantic"], np.array(result.items.labels)
    tested = kept.labels[0] >= 0
    assert tested.sum(1).tolist() == [36, 36] and not (tested[0] & tested[1]).any()
    for seed in range(2):
        assert (np.array(result.labels)[kept.labels[0, seed, tested[seed]]] == labels[tested[seed]]).all()
    assert np.isnan(kept.bits[0][~tested]).all() and (kept.bits[0][tested] < 0.2).all()
    assert np.nanmean(kept.pvi) == pytest.approx(by_name(result)["semantic"].information, rel=1e-5)
    assert np.isnan(kept.pvi).sum() == 360 - 72


def test_paper_mode_is_sentevals_protocol_once() -> None:
    config = ProbeConfig(senteval=True, probe="mlp10")
    outcome = probes.run(Fake(), TASKS["length"], SENTENCES, lang="fr", config=config)
    assert outcome.seeds == 1
    rows = by_name(outcome)
    assert set(rows) == {"semantic", "language"}
    assert rows["semantic"].probe.startswith("senteval, 10 hidden units, L2 ")
    assert rows["semantic"].selectivity is outcome.difference is None
    train, dev, test = cuts_of(outcome.items, 1, 0)[0]
    vectors, labels = Fake().embed(outcome.items.sentences, lang="fr"), np.array(outcome.items.labels)
    tokens = [len(sentence.split()) for sentence in outcome.items.sentences]
    ordered = [sorted(rows, key=lambda row: (tokens[row], labels[row])) for rows in (train, dev, test)]
    same = split_classify(*((vectors[rows], labels[rows]) for rows in ordered), SentEval(hidden=10))
    assert round(100 * rows["semantic"].accuracy, 2) == same.test_accuracy
    kept = outcome.predictions["semantic"].labels[0, 0, ordered[2]]
    assert (np.array(outcome.labels)[kept] == same.predicted).all()


def test_many_labels() -> None:
    """With 50 labels or more, n-grams are classified by naive Bayes, which finds the word that is the label."""
    sentences = [f"mot{number % 60} dit {number}" for number in range(2_400)]
    labelled = Items(sentences, [f"{number % 60:02}" for number in range(2_400)], list(range(2_400)))
    config = ProbeConfig(seeds=1, control=False)
    rows = by_name(probes.run(Fake(), "length", labelled, lang="fr", latents=["language"], config=config))
    assert rows["word 1-2-grams"].accuracy == 1.0
    assert rows["majority"].accuracy < 0.05
