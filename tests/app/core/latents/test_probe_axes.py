"""Maps on probe axes: planted directions are recovered, and the score of noise is at chance level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

import bgt_core
from app.core import rows
from app.core.latents import geometry, probe_axes, spaces
from app.core.state import Loaded
from bgt_core.vectors.compare import unit
from tests.close import FLOAT32, assert_close


@pytest.fixture
def vectors() -> np.ndarray:
    return unit(np.random.default_rng(0).normal(size=(400, 12))).astype(np.float32)


def opened(saved: Path) -> Loaded:
    bgt = bgt_core.load(saved)
    return Loaded("saved", bgt, bgt.langs, bgt_core.info(saved), [], "the CPU")


def test_ridge_is_that_of_another_implementation_at_one_of_the_strengths(vectors: np.ndarray) -> None:
    values = vectors[:, 0] + np.random.default_rng(2).normal(size=400)
    weights, bias = probe_axes.ridge(vectors, values)
    centred = vectors - vectors.mean(0)
    scale = np.linalg.svd(centred, compute_uv=False) ** 2
    others = [Ridge(alpha=strength * scale.mean()).fit(vectors, values) for strength in probe_axes.STRENGTHS]
    nearest = min(others, key=lambda other: np.abs(other.coef_ - weights).max())
    assert_close(weights, nearest.coef_)
    assert_close(bias, nearest.intercept_, scale=np.abs(weights).max())


def test_readings_are_those_of_the_literature() -> None:
    scores, values = np.array([0.1, 0.4, 0.4, 0.8, 0.9, 0.3]), np.array([0, 0, 1, 1, 1, 0.0])
    assert probe_axes.reading(scores, values, 6).value == pytest.approx(roc_auc_score(values, scores))
    rng = np.random.default_rng(0)  # Hanley and McNeil (1982): AUC 0.893, 51 and 58 cases, standard error 0.032
    scores = np.concatenate([rng.normal(1.757, 1, 51), rng.normal(0, 1, 58)])
    reading = probe_axes.reading(scores, np.repeat([1.0, 0.0], [51, 58]), 109)
    assert reading.value - reading.low == pytest.approx(1.96 * 0.032, abs=0.02)
    line = np.arange(103.0)
    noisy = line + 60 * np.random.default_rng(1).normal(size=103)
    reading = probe_axes.reading(noisy, line, 103)
    assert np.arctanh(reading.high) - np.arctanh(reading.value) == pytest.approx(0.196)
    # translations repeat the same information, and make nothing more certain
    assert probe_axes.reading(np.tile(noisy, 4), np.tile(line, 4), 103).low == pytest.approx(reading.low)


def test_a_map_shows_the_scores_and_its_axes_say_how_to_move_on_it(saved: Path) -> None:
    loaded = opened(saved)
    table = rows.examples(("en", "fr"), 40)
    method = geometry.Method(probe_axes.NAME, axes=("Longer", "Question"))
    fitted = spaces.spaces(loaded, table, method)
    longer, question = probe_axes.axes(loaded, ["en"], "language", method.axes)
    space = fitted.second["en"]
    assert_close(space.rows["x"], unit(space.vectors) @ longer.weights + longer.bias, FLOAT32)
    assert_close(space.rows["y"], unit(space.vectors) @ question.weights + question.bias, FLOAT32)
    axes = space.projection.axes
    weights = np.column_stack([longer.weights, question.weights])
    assert axes is not None
    assert_close(weights.T @ axes, np.eye(2), FLOAT32)
    assert np.linalg.matrix_rank(np.hstack([weights, axes]), tol=1e-3) == 2  # no part leaves both scores unchanged
