"""Probes of encoders with known accuracies are right, and made-up scores cause the right notes and warnings."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import probes
from bgt_core.errors import UsageError
from probes import ProbeConfig
from probes.measures.measure import Measured, Study
from probes.probe import encoder_warnings, item_warnings, score_warnings, with_note
from probes.results.store import MAJORITY, ProbeResult, ProbeScore
from probes.tables import correctness
from probes.task import Items, count_words

SENTENCES = [f"Le mot {number} est " + "très " * (number % 6) + "long." for number in range(360)]


class Fake:
    """A fake encoder. Its semantic latent is a one-hot vector of the number of words; the language latent is 1."""

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


def test_scores_of_a_latent_that_determines_the_label_and_of_a_constant_latent(result: ProbeResult) -> None:
    rows = by_name(result)
    assert list(rows) == ["semantic", "language", "majority", "length", "word 1-2-grams", "character 3-5-grams"]
    row = rows["semantic"]
    assert (row.accuracy, row.ci_high, row.sd, row.note) == (1.0, 1.0, 0.0, "")
    assert (row.classes, row.n_test, row.n_train) == (6, 72, 288)
    assert row.ci_low == pytest.approx(binomtest(72, 72).proportion_ci(method="wilson").low)
    assert row.information == pytest.approx(np.log2(6), abs=0.1)  # the labels' entropy
    assert rows["language"].accuracy == rows["majority"].accuracy < 0.25
    assert "not separable from majority" in rows["language"].note
    assert rows["language"].information == pytest.approx(0.0, abs=0.01)
    assert abs(rows["majority"].information) < 1e-5 * np.log2(6)
    assert rows["length"].accuracy > 0.95
    without = probes.run(Fake(), "length", SENTENCES, lang="fr", config=ProbeConfig(seeds=1, baselines=False))
    assert set(by_name(without)) == {"semantic", "language"}


def test_differences_are_paired_on_test_items(result: ProbeResult) -> None:
    gap, rows = result.difference, by_name(result)
    assert gap.points == pytest.approx(100 * (rows["semantic"].accuracy - rows["language"].accuracy))
    assert 0 < gap.ci_low <= gap.points <= gap.ci_high <= 100
    assert gap.p < 0.05 and (gap.first, gap.second) == ("semantic", "language")
    for gaps, second in ((result.over_majority, "majority"), (result.over_baseline, "length")):
        assert [(each.first, each.second) for each in gaps] == [("semantic", second), ("language", second)]
    assert (result.seeds, result.seed, result.resamples, result.left_out) == (2, 0, 2_000, 0)


def test_a_latent_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="latents must name one or more latents, each only once"):
        probes.run(Fake(), "length", SENTENCES, lang="fr", latents=["semantic", "semantic"])


class Other(Fake):
    """A fake encoder from another training than `Fake`: its vectors of every second item are 0."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        vectors = super().embed(sentences, lang=lang, latent=latent)
        return vectors * (np.arange(len(vectors)) % 2)[:, None]


def test_reference_encoders_are_rows_and_not_baselines_of_lower_accuracy() -> None:
    config, references = ProbeConfig(seeds=2), {"untrained": [Other(), Other(), Fake()]}
    given = {"latents": ["language"], "references": references, "config": config}
    outcome = probes.run(Fake(), "length", SENTENCES, lang="fr", **given)
    row = by_name(outcome)["untrained"]
    assert (row.encoders, row.probe) == (3, "linear")
    low = (3 * row.accuracy - 1.0) / 2  # the accuracy of each `Other`, because `Fake` is always right
    assert row.encoder_sd == pytest.approx(np.std([low, low, 1.0], ddof=1))
    assert row.boot_low < row.ci_low < row.ci_high < row.boot_high  # the bootstrap also varies the encoders
    assert correctness(outcome.predictions, "untrained")[0].shape == (3, 2, 72)
    assert row.accuracy > by_name(outcome)["language"].accuracy
    (gap,) = outcome.over_baseline
    assert (gap.first, gap.second) == ("language", "length")
    assert gap.ci_high < 0


def test_each_test_of_an_item_is_a_row_of_predictions(result: ProbeResult) -> None:
    rows = result.predictions.to_pandas()
    own = rows[rows["predictor"] == "semantic"]
    assert own["seed"].value_counts().to_dict() == {0: 36, 1: 36} and own["item"].is_unique
    assert (own["predicted"] == own["label"]).all() and (own["bits"] < 0.2).all()
    assert set(own["sentence"]) <= set(SENTENCES)
    assert own["pvi"].mean() == pytest.approx(by_name(result)["semantic"].information, rel=1e-5)


def test_with_many_labels_n_grams_are_classified_by_naive_bayes() -> None:
    sentences = [f"mot{number % 60} dit {number}" for number in range(2_400)]
    labelled = Items(sentences, [f"{number % 60:02}" for number in range(2_400)], list(range(2_400)))
    config = ProbeConfig(seeds=1, control=False)
    rows = by_name(probes.run(Fake(), "length", labelled, lang="fr", latents=["language"], config=config))
    assert rows["word 1-2-grams"].accuracy == 1.0
    assert rows["majority"].accuracy < 0.05


ROWS = np.arange(300)
TEXTS = [f"w{row % 8} number {row}" for row in ROWS]
LABELS = ROWS // 8 % 2
STUDY = Study("toy", "en", Items(TEXTS, [*map(str, LABELS)], ROWS.tolist()), ["0", "1"], LABELS,
              [tuple(np.split(ROWS, [200, 240]))], 5)  # fmt: skip
NOTHING = np.zeros((2, 3, 300))  # two encoder seeds, three probe seeds, 300 items
MEASURED = Measured(NOTHING, NOTHING, NOTHING, NOTHING > 0, dev=0.75, unconverged=0)


def row(latent: str, accuracy: float, half: float = 0.05, **fields: Any) -> ProbeScore:
    return ProbeScore("toy", "en", latent, 200, 60, 2, accuracy, accuracy - half, accuracy + half, 0.0, **fields)


@pytest.mark.parametrize(
    ("score", "best", "note"),
    [
        (row("own", 0.60), True, "not separable from majority"),  # its interval begins at 0.55, the majority's accuracy
        (row("other", 0.69), True, "below length"),  # its interval ends at 0.74, below the baseline's 0.75
        (replace(row("other", 0.69), ci_high=0.75), True, ""),
        (row("other", 0.69, note="did not converge"), True, "did not converge; below length"),
        (row("words", 0.70, half=0.2), False, "not separable from majority"),
        (row(MAJORITY, 0.55), False, ""),
        (row("length", 0.80), False, ""),
    ],
)
def test_notes_compare_a_latent_with_the_majority_and_the_best_baseline(
    score: ProbeScore, best: bool, note: str
) -> None:
    assert with_note(score, row(MAJORITY, 0.55), row("length", 0.80) if best else None).note == note


def test_a_score_is_warned_of_past_its_bounds() -> None:
    assert score_warnings(row("own", 0.70), MEASURED, 40) == []
    unconverged = replace(MEASURED, unconverged=2)
    assert score_warnings(row("own", 0.70), unconverged, 40) == ["own: 2 of 6 probes did not converge."]
    (warning,) = score_warnings(row("own", 0.2), MEASURED, 40)
    assert warning == ("own: dev accuracy 75.0 and test accuracy 20.0 are more than 3 intervals apart: the splits "
                       "differ by more than chance.")  # fmt: skip
    (warning,) = score_warnings(row("own", 0.7, control=0.71, selectivity=-0.1), MEASURED, 40)
    assert warning == "own: accuracy on the control task, 71.0, is above that on the task: the probe memorises."
    assert score_warnings(row("own", 0.7, control=0.7, selectivity=0.0), MEASURED, 40) == []


def test_warnings_of_items() -> None:
    assert item_warnings(STUDY) == []
    for ones, warned in ((270, False), (271, True)):
        labels = ["x"] * ones + ["y"] * (300 - ones)
        warnings = item_warnings(replace(STUDY, items=replace(STUDY.items, labels=labels)))
        assert warnings == (["90% of the items are 'x': accuracy is not informative."] if warned else [])
    texts = list(TEXTS)
    texts[200], texts[240], texts[241], texts[202] = texts[0], texts[1], texts[201], texts[2]
    texts[242] = texts[2]  # a sentence in all three splits
    warnings = item_warnings(replace(STUDY, items=replace(STUDY.items, sentences=texts)))
    assert warnings == ["4 sentences are in two splits: drop them, or put their versions in one group."]


@pytest.mark.parametrize(("count", "warned"), [(3, False), (4, True)])
def test_an_encoder_that_truncates_is_warned_of_from_one_in_a_hundred(count: int, warned: bool) -> None:
    encoder = SimpleNamespace(count_truncated=lambda sentences, *, lang: count * (sentences == TEXTS))
    warnings = ["4 of 300 sentences are too long for the encoder, which ignores their ends."]
    assert encoder_warnings(encoder, STUDY) == (warnings if warned else [])
    assert encoder_warnings(SimpleNamespace(), STUDY) == []
