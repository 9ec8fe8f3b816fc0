"""Notes and warnings for results made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from probes.measures.measure import Measured
from probes.measures.study import Study
from probes.measures.summary import encoder_warnings, item_warnings, score_warnings, with_note
from probes.result import MAJORITY, ProbeScore
from probes.task import Items

ROWS = np.arange(300)
SENTENCES = [f"w{row % 8} number {row}" for row in ROWS]
LABELS = ROWS // 8 % 2
STUDY = Study("toy", "en", Items(SENTENCES, [*map(str, LABELS)], ROWS.tolist()), ["0", "1"], LABELS,
              [tuple(np.split(ROWS, [200, 240]))], 5)  # fmt: skip
NOTHING = np.zeros((2, 3, 300))  # two encoder seeds, three probe seeds
MEASURED = Measured(NOTHING, NOTHING, NOTHING, NOTHING > 0, dev=0.75, unconverged=0)


def row(latent: str, accuracy: float, half: float = 0.05, **fields: Any) -> ProbeScore:
    return ProbeScore("toy", "en", latent, 200, 60, 2, accuracy, accuracy - half, accuracy + half, 0.0, **fields)


@pytest.mark.parametrize(
    ("score", "best", "note"),
    [
        (row("own", 0.60), True, "not separable from majority"),  # its interval begins at 0.55
        (row("other", 0.69), True, "below length"),  # 0.74 is below 0.75
        (replace(row("other", 0.69), ci_high=0.75), True, ""),
        (row("other", 0.69, note="did not converge"), True, "did not converge; below length"),
        (row("words", 0.70, half=0.2), False, "not separable from majority"),
        (row(MAJORITY, 0.55), False, ""),
        (row("length", 0.80), False, ""),
    ],
)
def test_notes_say_how_a_latent_stands_to_the_baselines(score: ProbeScore, best: bool, note: str) -> None:
    assert with_note(score, row(MAJORITY, 0.55), row("length", 0.80) if best else None).note == note


def test_warnings_of_a_predictor_begin_past_their_bounds() -> None:
    assert score_warnings(row("own", 0.70), MEASURED, 40) == []
    unconverged = replace(MEASURED, unconverged=2)
    assert score_warnings(row("own", 0.70), unconverged, 40) == ["own: 2 of 6 probes did not converge."]
    (warning,) = score_warnings(row("own", 0.2), MEASURED, 40)
    assert warning == ("own: dev accuracy 75.0 and test accuracy 20.0 are more than 3 intervals apart: the splits "
                       "differ by more than chance.")  # fmt: skip
    for dev, n_dev in ((0.99, 1_000), (0.6, 40)):
        for accuracy in np.arange(0.05, 1, 0.05):
            half = 1.96 * math.sqrt(dev * (1 - dev) / n_dev + accuracy * (1 - accuracy) / 60)
            warned = bool(score_warnings(row("own", accuracy), replace(MEASURED, dev=dev), n_dev))
            assert warned == (abs(dev - accuracy) > 3 * half)
    (warning,) = score_warnings(row("own", 0.7, control=0.71, selectivity=-0.1), MEASURED, 40)
    assert warning == "own: accuracy on the control task, 71.0, is above that on the task: the probe memorises."
    assert score_warnings(row("own", 0.7, control=0.7, selectivity=0.0), MEASURED, 40) == []


def test_warnings_of_items() -> None:
    assert item_warnings(STUDY) == []
    for ones, warned in ((270, False), (271, True)):
        labels = ["x"] * ones + ["y"] * (300 - ones)
        warnings = item_warnings(replace(STUDY, items=replace(STUDY.items, labels=labels)))
        assert warnings == (["90% of the items are 'x': accuracy is not informative."] if warned else [])
    texts = list(SENTENCES)
    texts[200], texts[240], texts[241], texts[202] = texts[0], texts[1], texts[201], texts[2]
    texts[242] = texts[2]  # in all three: counted once
    warnings = item_warnings(replace(STUDY, items=replace(STUDY.items, sentences=texts)))
    assert warnings == ["4 sentences are in two splits: drop them, or put their versions in one group."]


@pytest.mark.parametrize(("count", "warned"), [(3, False), (4, True)])
def test_an_encoder_that_truncates_is_warned_of_from_one_in_a_hundred(count: int, warned: bool) -> None:
    encoder = SimpleNamespace(count_truncated=lambda sentences, *, lang: count * (sentences == SENTENCES))
    warnings = ["4 of 300 sentences are too long for the encoder, which ignores their ends."]
    assert encoder_warnings(encoder, STUDY) == (warnings if warned else [])
    assert encoder_warnings(SimpleNamespace(), STUDY) == []
