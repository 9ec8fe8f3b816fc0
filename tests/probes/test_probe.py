"""Probes on embedders whose right scores are known."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import probes
from bgt_core.errors import BgtError, UsageError
from bgt_core.evaluation.bootstrap import wilson
from probes import ProbeConfig
from probes.classifiers.senteval import SentEval, split_classify
from probes.measures.splits import cuts_of
from probes.measures.study import prepare
from probes.probe import senteval_config
from probes.result import ProbeResult, ProbeScore
from probes.task import Items
from probes.tasks import TASKS
from probes.words import count_words

SENTENCES = [f"Le mot {number} est " + "très " * (number % 6) + "long." for number in range(360)]


class Fake:
    """The semantic latent holds the number of words; the language latent says nothing."""

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
    assert gap.p < 0.05


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


def test_a_latent_below_a_baseline_says_so() -> None:
    class Weak(Fake):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.array([[count_words(sentence) > 6] for sentence in sentences], dtype=np.float32)

    outcome = probes.run(Weak(), "length", SENTENCES, lang="fr", latents=["language"], config=ProbeConfig(seeds=2))
    row = by_name(outcome)["language"]
    assert row.note in ("below length", "below word 1-2-grams", "below character 3-5-grams")


def test_the_same_seed_gives_the_same_result(result: ProbeResult) -> None:
    assert probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=2)) == result


def test_gender_of_built_in_sentences_at_chance_is_not_separable() -> None:
    class Constant(Fake):
        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return np.zeros((len(sentences), 2), dtype=np.float32)

    config = ProbeConfig(max_items=600, seeds=2)
    outcome = probes.run(Constant(), "gender", lang="fr", latents=["language"], config=config)
    rows = by_name(outcome)
    assert rows["language"].accuracy == rows["majority"].accuracy == 0.5
    assert rows["language"].note == "not separable from majority"
    assert rows["word 1-2-grams"].accuracy > 0.6  # seen articles and nouns
    assert outcome.difference is None


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
        ({"level": 95.0}, "^level 95.0: choose a level between 0 and 1"),
        ({"resamples": 99}, "^resamples 99 must be at least 100"),
        ({"l2": -1.0}, "^l2 -1: choose a penalty above 0"),
    ],
)
def test_options_that_mean_nothing_name_the_parameter(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ProbeConfig(**options)


class Other(Fake):
    """Another training: right of every second item, whatever it is."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        vectors = super().embed(sentences, lang=lang, latent=latent)
        return vectors * (np.arange(len(vectors)) % 2)[:, None]


def test_encoder_seeds_are_averaged_and_their_spread_is_kept_apart() -> None:
    alone = by_name(probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=2)))["semantic"]
    several = probes.run(
        Fake(),
        "length",
        SENTENCES,
        lang="fr",
        encoder_seeds=[Other(), Fake()],
        config=ProbeConfig(seeds=2, baselines=False),
    )
    row = by_name(several)["semantic"]
    assert (alone.encoders, alone.encoder_sd, row.encoders) == (1, 0.0, 3)
    low = 3 * row.accuracy - 2.0  # that of the other encoder: two are always right
    assert row.encoder_sd == pytest.approx(np.std([1.0, low, 1.0], ddof=1))
    assert row.boot_low < row.ci_low and row.ci_high < row.boot_high  # three encoders say little of the next
    assert several.predictions["semantic"].labels.shape == (3, 2, 360)


def test_an_interval_without_an_error_has_a_width() -> None:
    row = by_name(probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=2)))["semantic"]
    assert row.accuracy == row.ci_high == row.boot_high == 1.0
    assert row.boot_low == row.ci_low == pytest.approx(wilson(row.n_test, row.n_test)[0])
    assert row.boot_low < 0.99


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


def test_the_result_is_plain_json_without_items(result: ProbeResult) -> None:
    document = json.loads(json.dumps(result.as_dict()))
    assert document["rows"][0]["accuracy"] == 1.0
    assert not {"items", "predictions"} & set(document)


def test_paper_mode_is_sentevals_protocol_once() -> None:
    config = ProbeConfig(mdl=True, probe="mlp10")
    outcome = probes.run_senteval_protocol(Fake(), TASKS["length"], SENTENCES, lang="fr", config=config)
    assert outcome.seeds == 1
    rows = by_name(outcome)
    assert set(rows) == {"semantic", "language"}
    assert rows["semantic"].probe.startswith("senteval, 10 hidden units, L2 ")
    assert rows["semantic"].codelength is rows["semantic"].selectivity is outcome.difference is None
    train, dev, test = cuts_of(outcome.items, 1, 0)[0]
    vectors, labels = Fake().embed(outcome.items.sentences, lang="fr"), np.array(outcome.items.labels)
    tokens = [len(sentence.split()) for sentence in outcome.items.sentences]
    ordered = [sorted(rows, key=lambda row: (tokens[row], labels[row])) for rows in (train, dev, test)]
    same = split_classify(*((vectors[rows], labels[rows]) for rows in ordered), SentEval(hidden=10))
    assert round(100 * rows["semantic"].accuracy, 2) == same.test_accuracy
    kept = outcome.predictions["semantic"].labels[0, 0, ordered[2]]
    assert (np.array(outcome.labels)[kept] == same.predicted).all()


def test_word_content_has_no_hidden_layer_in_paper_mode() -> None:
    given = replace(TASKS["length"], name="word-content")
    outcome = probes.run_senteval_protocol(Fake(), given, SENTENCES, lang="fr", config=ProbeConfig(probe="mlp10"))
    assert outcome.rows[0].probe.startswith("senteval, 0 hidden units")


def test_many_labels() -> None:
    """From 50 labels on n-grams are read by naive Bayes; the word that is the label is read without a fault."""
    sentences = [f"mot{number % 60} dit {number}" for number in range(2_400)]
    labelled = Items(sentences, [f"{number % 60:02}" for number in range(2_400)], list(range(2_400)))
    config = ProbeConfig(seeds=1, control=None)
    rows = by_name(probes.run(Fake(), "length", labelled, lang="fr", latents=["language"], config=config))
    assert rows["word 1-2-grams"].accuracy == 1.0
    assert rows["majority"].accuracy < 0.05


def test_max_train_takes_whole_groups_from_train_alone() -> None:
    task = TASKS["length"]
    items = task.items(SENTENCES, "fr")
    doubled = Items(*([*part, *part] for part in (items.sentences, items.labels, items.groups)))
    whole, part = (
        prepare(task, doubled, lang="fr", config=ProbeConfig(max_train=most, seeds=2)) for most in (None, 201)
    )
    for (train, dev, test), (fewer, same_dev, same_test) in zip(whole.cuts, part.cuts, strict=True):
        assert 190 < len(fewer) <= 201 < len(train)
        assert set(fewer) <= set(train)
        sizes, all_sizes = (Counter(whole.items.groups[row] for row in rows) for rows in (fewer, train))
        assert all(count == all_sizes[group] == 2 for group, count in sizes.items())
        np.testing.assert_array_equal(dev, same_dev)
        np.testing.assert_array_equal(test, same_test)


def test_the_paper_protocol_takes_the_papers_sizes() -> None:
    """10,000 items elsewhere, so that a command takes seconds; there all, up to 120,000."""
    items = Items([f"s{n}" for n in range(10_400)], ["a", "b"] * 5_200, list(range(10_400)))
    configs = [ProbeConfig(), senteval_config(ProbeConfig()), senteval_config(ProbeConfig(max_items=400))]
    sizes = [len(prepare(TASKS["depth"], items, lang="en", config=config).labels) for config in configs]
    assert sizes == [10_000, 10_400, 400]
