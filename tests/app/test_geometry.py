"""Maps and neighbours, against the same worked another way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app import geometry

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)


def test_pca_is_the_projection_on_the_leading_eigenvectors(vectors: np.ndarray) -> None:
    found = geometry.fit(vectors, geometry.Method())
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    expected = centred @ axes[:, ::-1][:, :2]
    assert np.allclose(np.abs(found.xy), np.abs(expected), atol=1e-5)  # an axis may point either way
    assert found.share == pytest.approx(values[-2:].sum() / values.sum(), abs=1e-5)


def test_new_rows_land_where_fitted_ones_did_whatever_their_length(vectors: np.ndarray) -> None:
    found = geometry.fit(vectors, geometry.Method())
    assert np.allclose(found.place(vectors[:3] * 5), found.xy[:3], atol=1e-5)


def test_umap_repeats_itself_for_a_seed_and_differs_for_another() -> None:
    code = """
import numpy as np
from app.geometry import Method, fit
vectors = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
one, again, other = (fit(vectors, Method("UMAP", 5, seed)) for seed in (1, 1, 2))
assert one.xy.shape == (20, 2) and np.isfinite(one.xy).all() and one.share is None
assert np.array_equal(one.xy, again.xy) and not np.array_equal(one.xy, other.xy)
assert one.place(vectors[:2] + 0.01).shape == (2, 2)
"""
    without_compiler = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # twenty rows take less than compiling
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=without_compiler, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nearest_by_cosine_leaves_the_row_itself_out() -> None:
    vectors = np.array([[1, 0], [10, 1], [0, 1], [-1, 0]], dtype=np.float32)
    found, cosines = geometry.nearest(vectors, 0, 2)
    assert found.tolist() == [1, 2]
    assert cosines == pytest.approx([10 / 101**0.5, 0.0])
    assert len(geometry.nearest(vectors, 0, 99)[0]) == 3


def test_pair_scores_by_hand() -> None:
    left = np.eye(3, dtype=np.float32)
    right = np.array([[2, 0, 0], [1, 0, 0], [0, 0, 3]], dtype=np.float32)  # the second points where the first does
    found = geometry.pair_scores(left, right)
    assert (found.there, found.back) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.chance == pytest.approx(1 / 3)
    assert found.translations == pytest.approx(2 / 3) and found.others == pytest.approx(1 / 3)


def test_agreement_by_hand() -> None:
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], dtype=np.float32)  # two close couples
    assert geometry.agreement(vectors, ["a", "a", "b", "b"]) == (1.0, pytest.approx(1 / 3))
    assert geometry.agreement(vectors, ["a", "b", "a", "b"]) == (0.0, pytest.approx(1 / 3))
    assert geometry.agreement(vectors, [1, 1, 1, 1]) == (1.0, 1.0)
