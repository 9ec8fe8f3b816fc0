"""Maps and neighbours, against the same worked another way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from app.core.latents import geometry
from bgt_core.vectors.compare import unit
from tests.close import FLOAT32, assert_close

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32)


def test_pca_is_the_projection_on_the_leading_eigenvectors(vectors: np.ndarray) -> None:
    projection = geometry.fit(vectors, geometry.Method())
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    expected = centred @ axes[:, ::-1][:, :2]
    assert_close(np.abs(projection.xy), np.abs(expected))  # an axis may point either way
    assert_close(projection.variance, values[-2:].sum() / values.sum())


def test_new_rows_land_where_fitted_ones_did_whatever_their_length(vectors: np.ndarray) -> None:
    projection = geometry.fit(vectors, geometry.Method())
    assert_close(projection.project(vectors[:3] * 5), projection.xy[:3])


@pytest.mark.slow
def test_umap_repeats_itself_for_a_seed_and_differs_for_another() -> None:
    code = """
import numpy as np
from app.core.latents.geometry import Method, fit
vectors = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
one, again, other = (fit(vectors, Method("UMAP", 5, seed)) for seed in (1, 1, 2))
assert one.xy.shape == (20, 2) and np.isfinite(one.xy).all() and one.variance is None
assert np.array_equal(one.xy, again.xy) and not np.array_equal(one.xy, other.xy)
assert one.project(vectors[:2] + 0.01).shape == (2, 2)
"""
    without_compiler = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # twenty rows take less than compiling
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=without_compiler, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
        for metric in SCALED:
            xy = fit(vectors, Method(name, 15, metric=metric)).xy
            assert xy.shape == (len(vectors), 2) and np.isfinite(xy).all(), (name, metric, vectors)
            same = (vectors[:, None] == vectors).all(-1)
            assert (xy[:, None] == xy).all(-1)[same].all(), (name, metric, vectors)
"""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_copies_have_one_place_and_do_not_move_the_others(vectors: np.ndarray) -> None:
    method = geometry.Method("t-SNE", 5)
    alone, copies = geometry.fit(vectors, method), np.array([3, 3, 17])
    both = geometry.fit(np.concatenate([vectors, vectors[copies] * np.float32(1 + 1e-7)]), method)
    assert np.array_equal(both.xy, np.concatenate([alone.xy, alone.xy[copies]]))
    assert both.neighbours == 5
    assert geometry.fit(vectors[:7], geometry.Method("t-SNE", 30)).neighbours == pytest.approx(2)


@pytest.mark.parametrize(("long", "size"), [(1, 1e6), (8, 1e6), (1, 1e11)])
def test_a_few_very_long_vectors_hide_no_difference_of_the_others(long: int, size: float) -> None:
    rows = np.random.default_rng(0).normal(size=(150, 16)).astype(np.float32)
    rows[:long] *= size
    projection = geometry.fit(rows, geometry.Method("t-SNE", 15, metric="Euclidean"))
    assert len(np.unique(projection.xy, axis=0)) == 150 and projection.neighbours == 15


@pytest.mark.parametrize("spread", [7e-4, 1e-5])
def test_vectors_of_a_small_spread_are_not_the_same(spread: float) -> None:
    rows = (1 + spread * np.random.default_rng(0).normal(size=(200, 30))).astype(np.float32)
    exact = PCA(2).fit(rows.astype(float) / np.linalg.norm(rows.astype(float), axis=1, keepdims=True))
    variance = geometry.fit(rows, geometry.Method()).variance
    assert variance == pytest.approx(exact.explained_variance_ratio_.sum(), rel=0.02)
    far = (rows * 1e6).astype(np.float32)
    expected = PCA(2).fit(far.astype(float)).explained_variance_ratio_.sum()
    assert geometry.fit(far, geometry.Method(metric="Euclidean")).variance == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("metric", ["Cosine", "Euclidean"])
@pytest.mark.parametrize("name", ["PCA", "t-SNE"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_largest_vectors_are_moved_to_finite_ones(name: str, metric: str) -> None:
    rows = (np.random.default_rng(0).uniform(0.5, 1, (60, 6)) * 3.4e38).astype(np.float32)
    projection = geometry.fit(rows, geometry.Method(name, 5, metric=metric))
    for goal in (projection.xy[3] * 1.1, np.array([1e3, -1e3]), projection.xy[0] * 30):
        assert np.isfinite(geometry.moved(projection, rows, rows[5], goal).astype(np.float32)).all()


@pytest.mark.parametrize("method", ["t-SNE", "UMAP"])
def test_fewer_than_five_different_vectors_are_drawn_by_pca(vectors: np.ndarray, method: str) -> None:
    few = vectors[np.arange(30) % 4]
    projection = geometry.fit(few, geometry.Method(method))
    assert np.array_equal(projection.xy, geometry.fit(few, geometry.Method()).xy)
    assert projection.variance and projection.neighbours is None


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_a_euclidean_plane_scales_with_its_vectors(unequal: np.ndarray, scale: float) -> None:
    plane, scaled = (geometry.fit(rows, geometry.Method(metric="Euclidean")) for rows in (unequal, unequal * scale))
    assert scaled.variance == pytest.approx(plane.variance)
    assert scaled.xy / scale == pytest.approx(plane.xy, rel=1e-4)
    assert scaled.project(unequal[:2] * scale) / scale == pytest.approx(plane.xy[:2], rel=1e-4)
    assert geometry.trust(unequal * scale, scaled.xy, "Euclidean") == pytest.approx(
        geometry.trust(unequal, plane.xy, "Euclidean")
    )


def test_a_large_constant_hides_no_difference_from_a_euclidean_plane(vectors: np.ndarray) -> None:
    plane = geometry.fit(vectors, geometry.Method(metric="Euclidean"))
    far = geometry.fit(vectors + np.float32(8192), geometry.Method(metric="Euclidean"))  # rounds to 1/1024
    assert far.variance == pytest.approx(plane.variance, rel=1e-2)
    assert np.abs(far.xy) == pytest.approx(np.abs(plane.xy), abs=1e-2)


def test_vectors_of_one_unit_lie_on_a_line(vectors: np.ndarray) -> None:
    xy = geometry.fit(vectors[:, :1], geometry.Method(metric="Euclidean")).xy
    assert_close(xy[:, 0], vectors[:, 0] - vectors[:, 0].mean())
    assert not xy[:, 1].any()


def test_the_centre_of_a_group_is_a_row_of_it(vectors: np.ndarray) -> None:
    group = np.arange(len(vectors)) % 3 == 1
    cosines = unit(vectors) @ unit(vectors[group]).mean(0)
    assert geometry.central(vectors, group) == np.where(group, cosines, -2).argmax()


def test_pair_scores_by_hand() -> None:
    similarities = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]], dtype=np.float32)  # the second answer is the first's too
    scores = geometry.pair_scores(similarities)
    assert scores.left_finds_right == pytest.approx((1 / 2 + 1 / 3 + 1) / 3)  # answers that tie share a hit
    assert scores.right_finds_left == pytest.approx(2 / 3)
    assert scores.chance == pytest.approx(1 / 3)
    assert scores.translations == pytest.approx(2 / 3) and scores.others == pytest.approx(1 / 3)


def test_agreement_by_hand() -> None:
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], dtype=np.float32)  # two close couples
    similarities = unit(vectors) @ unit(vectors).T
    assert geometry.agreement(similarities, ["a", "a", "b", "b"]) == (1.0, pytest.approx(1 / 3))
    assert geometry.agreement(similarities, ["a", "b", "a", "b"]) == (0.0, pytest.approx(1 / 3))
    assert geometry.agreement(similarities, [1, 1, 1, 1]) == (1.0, 1.0)


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
    vectors = np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)  # a map of itself
    assert geometry.trust(vectors, vectors) == pytest.approx(1)
    assert geometry.trust(vectors, rng.normal(size=(200, 2))) == pytest.approx(0.5, abs=0.1)
    assert geometry.trust(vectors[:30], vectors[:30]) is None


def test_principal_axes_are_those_of_another_implementation(vectors: np.ndarray) -> None:
    units = unit(vectors)
    pca = PCA(3).fit(units)
    plane = geometry.principal_axes(vectors, 3)
    assert_close(plane.variance, pca.explained_variance_ratio_.sum())
    assert_close(np.abs(plane.project(vectors)), np.abs(pca.transform(units)), 10 * FLOAT32)


@pytest.fixture
def unequal(vectors: np.ndarray) -> np.ndarray:
    """Rows of very different lengths."""
    return vectors * np.geomspace(0.1, 100, len(vectors), dtype=np.float32)[:, None]


def test_a_euclidean_plane_is_that_of_another_implementation_lengths_included(unequal: np.ndarray) -> None:
    plane, pca = geometry.fit(unequal, geometry.Method(metric="Euclidean")), PCA(2).fit(unequal)
    assert_close(plane.variance, pca.explained_variance_ratio_.sum())
    assert_close(np.abs(plane.project(unequal)), np.abs(pca.transform(unequal)))
    assert geometry.trust(unequal, unequal, "Euclidean") == pytest.approx(1) != geometry.trust(unequal, unequal)


def test_new_rows_go_among_those_that_the_metric_calls_near() -> None:
    rng = np.random.default_rng(0)
    direction = np.repeat(np.eye(3, dtype=np.float32)[:2], 6, axis=0)
    vectors = direction * np.repeat([1, 10], 6)[:, None] + rng.normal(0, 0.01, (12, 3))  # short, and long elsewhere
    xy = np.repeat([[-1.0, 0], [1, 0]], 6, axis=0)
    new = np.array([[9.0, 4, 0]])  # points as the short rows, but ends near the long ones' circle
    assert geometry.placed(vectors, xy).project(new).tolist() == [[-1, 0]]
    nearer = np.linalg.norm(vectors - new, axis=1).argsort()[:5]
    assert geometry.placed(vectors, xy, "Euclidean").project(new)[0] == pytest.approx(np.median(xy[nearer], axis=0))


def test_a_vector_moved_on_a_euclidean_plane_reaches_its_place_by_the_shortest_way(unequal: np.ndarray) -> None:
    projection, goal = geometry.fit(unequal, geometry.Method(metric="Euclidean")), np.array([500.0, -300.0])
    moved = geometry.moved(projection, unequal, unequal[5], goal)
    assert_close(projection.project(moved[None])[0], goal)
    way = moved - unequal[5]
    assert_close(way, projection.axes @ (projection.axes.T @ way), FLOAT32)  # within the plane


def test_equal_rows_lie_at_one_place_and_have_no_variance() -> None:
    rng = np.random.default_rng(0)
    vectors = np.tile(rng.normal(size=16), (300, 1)).astype(np.float32) * rng.uniform(0.5, 2, (300, 1))
    plane = geometry.fit(vectors.astype(np.float32), geometry.Method())
    assert plane.variance == 0 and not plane.xy.any()


@pytest.mark.parametrize("rows", [np.zeros((40, 2_100)), np.tile(np.linspace(-1, 1, 2_100), (40, 1))])
def test_wide_rows_that_are_all_the_same_have_no_variance_either(rows: np.ndarray) -> None:
    plane = geometry.fit(rows.astype(np.float32), geometry.Method())
    assert plane.variance == 0
    assert_close(plane.xy, 0, scale=1)  # that of unit vectors


def test_zero_vectors_have_no_cosine_and_can_be_moved(vectors: np.ndarray) -> None:
    assert_close(geometry.mean_cosine(np.array([[0, 0], [0, 0], [3, 4]], np.float32)), 0, FLOAT32, scale=1)
    nothing, goal = np.zeros(7, np.float32), np.array([0.3, 0.2])
    assert np.linalg.norm(geometry.moved(geometry.fit(vectors, geometry.Method()), vectors, nothing, goal)) > 0
    projection = geometry.fit(vectors, geometry.Method(metric="Euclidean"))
    moved = geometry.moved(projection, vectors, nothing, goal)
    assert_close(projection.project(moved[None])[0], goal)


def test_principal_axes_read_rows_in_blocks(vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = geometry.principal_axes(vectors, 2)
    monkeypatch.setattr(geometry, "BLOCK", 7)
    assert_close(geometry.principal_axes(vectors, 2).project(vectors), whole.project(vectors))


def test_clusters_are_the_groups_that_there_are_the_largest_first() -> None:
    rng = np.random.default_rng(0)
    which = rng.permutation(np.repeat([0, 1, 2], [10, 30, 20]))
    vectors = np.eye(5, dtype=np.float32)[which] + rng.normal(0, 0.02, (60, 5)).astype(np.float32)
    fitted_on = np.arange(60) % 7 > 0
    assert (geometry.clusters(vectors, fitted_on, 3) == np.array([2, 0, 1])[which]).all()


def test_fewer_different_vectors_than_clusters_are_as_many_clusters() -> None:
    vectors = np.repeat(np.eye(2, dtype=np.float32), 5, axis=0)
    assert set(geometry.clusters(vectors, np.ones(10, bool), 6)) == {0, 1}
