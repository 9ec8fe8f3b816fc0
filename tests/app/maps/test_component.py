"""What the maps in the browser are told and answer, and where a star that is dragged takes a vector."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.latents import geometry
from app.maps import component
from bgt_core.vectors.compare import unit
from tests.close import assert_close


@pytest.mark.parametrize("count", [1, 8, 13])
def test_a_selection_comes_back_as_it_was_sent(count: int) -> None:
    mask = np.random.default_rng(count).random(count) < 0.5
    mask[0] = True
    assert component.unpacked(component.packed(mask), count).tolist() == mask.tolist()
    assert component.packed(mask & False) == "" and not component.unpacked("", count).any()


@pytest.fixture
def vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(60, 8)) * [5, 4, 1, 1, 1, 1, 1, 1] + 1).astype(np.float32)


def test_on_a_plane_a_moved_vector_lies_where_it_was_moved(vectors: np.ndarray) -> None:
    projection = geometry.fit(vectors, geometry.Method())
    goal = projection.xy[:20].mean(0)
    moved = geometry.moved(projection, vectors, vectors[5], goal)
    assert_close(projection.project(moved[None])[0], goal)
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(vectors[5]), rel=1e-4)
    back = geometry.moved(projection, vectors, vectors[5], projection.xy[5])
    assert_close(back, vectors[5])  # where it was it stays what it was


def test_on_a_map_without_axes_a_moved_vector_is_like_those_around(vectors: np.ndarray) -> None:
    xy = np.random.default_rng(1).normal(size=(60, 2))
    projection = geometry.Projection(xy, lambda new: new[:, :2], None)
    around = np.argsort(((xy - xy[7]) ** 2).sum(1))[: geometry.PLACED_BY]
    moved = geometry.moved(projection, vectors, vectors[5], xy[7])
    assert_close(unit(moved[None]), unit(vectors[around].mean(0, keepdims=True)))
