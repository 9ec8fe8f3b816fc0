"""Test maps by PCA and t-SNE, their trustworthiness, and vectors moved on a map, on synthetic vectors."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from app.core.latents import geometry
from tests.close import FLOAT32, assert_close

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)


@pytest.mark.parametrize("dims", [2, 3])
def test_pca_is_the_projection_on_the_leading_eigenvectors(vectors: np.ndarray, dims: int) -> None:
    projection = geometry.fit(vectors, geometry.Method(dims=dims))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    expected = centred @ axes[:, ::-1][:, :dims]
    assert_close(np.abs(projection.xy), np.abs(expected))  # the sign of an axis is arbitrary
    assert_close(projection.variance, values[-dims:].sum() / values.sum())


@pytest.mark.slow
def test_vectors_that_coincide_or_are_few_end_no_process() -> None:
    code = """
import numpy as np
from app.core.latents.geometry import SCALED, Method, fit
rng = np.random.default_rng(0)
rows = rng.normal(size=(120, 16))
line = np.outer(np.linspace(-1, 1, 24), rows[0])
copies = [rows[np.arange(60) % count] for count in (1, 2, 4, 5, 9)]
few = [rows[:count] for count in (1, 2, 3, 4, 5, 6)]
sizes = [rows[:24] * scale for scale in (1e30, 1e-30, 1e-43, 0)] + [rows[:24] * 10.0 ** -np.arange(24)[:, None]]
wide = [np.tile(rows[:count], (24 // count, 700)) for count in (1, 24)]
near = [rows[:1] * (1 + step * rows[:24]) for step in (1e-8, 1e-7, 1e-6)]
for vectors in [line, line[:, :1], *copies, *few, *sizes, *wide, *near, rows + 1e4]:
    vectors = vectors.astype(np.float32)
    for name in ("t-SNE", "UMAP") if len(vectors) < 6 else ("t-SNE",):  # UMAP is slow uncompiled
        for metric, dims in zip(SCALED, (2, 3) if len(vectors) > 2 else (2, 2)):
            xy = fit(vectors, Method(name, 15, metric=metric, dims=dims)).xy
            assert xy.shape == (len(vectors), dims) and np.isfinite(xy).all(), (name, metric, vectors)
            same = (vectors[:, None] == vectors).all(-1)
            assert (xy[:, None] == xy).all(-1)[same].all(), (name, metric, vectors)
"""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_tsne_keeps_groups_and_puts_new_rows_amid_their_own() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(6)[:2], 20, axis=0)
    vectors = (centres + rng.normal(0, 0.05, (40, 6))).astype(np.float32)
    projection = geometry.fit(vectors, geometry.Method("t-SNE", 5, 0))
    middles = projection.xy[:20].mean(0), projection.xy[20:].mean(0)
    new = projection.project(np.eye(6, dtype=np.float32)[:2])
    for at in range(2):
        assert np.linalg.norm(new[at] - middles[at]) < np.linalg.norm(new[at] - middles[1 - at])
    assert np.array_equal(projection.xy, geometry.fit(vectors, geometry.Method("t-SNE", 5, 0)).xy)


def test_trust_is_one_for_a_faithful_map_and_about_a_half_for_a_random_one() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 1.5, 200)
    vectors = np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)  # in 2D, a map can be exact
    assert geometry.trust(vectors, vectors) == pytest.approx(1)
    assert geometry.trust(vectors, rng.normal(size=(200, 2))) == pytest.approx(0.5, abs=0.1)
    assert geometry.trust(vectors[:30], vectors[:30]) is None


@pytest.fixture
def unequal(vectors: np.ndarray) -> np.ndarray:
    """Give vectors very different norms."""
    return vectors * np.geomspace(0.1, 100, len(vectors), dtype=np.float32)[:, None]


def test_a_euclidean_plane_is_that_of_another_implementation_lengths_included(unequal: np.ndarray) -> None:
    plane, pca = geometry.fit(unequal, geometry.Method(metric="Euclidean")), PCA(2).fit(unequal)
    assert_close(plane.variance, pca.explained_variance_ratio_.sum())
    assert_close(np.abs(plane.project(unequal)), np.abs(pca.transform(unequal)))
    assert geometry.trust(unequal, unequal, "Euclidean") == pytest.approx(1) != geometry.trust(unequal, unequal)


def test_a_vector_moved_on_a_euclidean_plane_reaches_its_place_by_the_shortest_way(unequal: np.ndarray) -> None:
    projection, goal = geometry.fit(unequal, geometry.Method(metric="Euclidean")), np.array([500.0, -300.0])
    moved = geometry.moved(projection, unequal, unequal[5], goal)
    assert_close(projection.project(moved[None])[0], goal)
    way = moved - unequal[5]
    assert_close(way, projection.axes @ (projection.axes.T @ way), FLOAT32)  # the vector moves within the map's plane
