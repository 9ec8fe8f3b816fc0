"""The nearest neighbours are those of a full sort of all cosines."""

import numpy as np
import pytest

from bgt_core.errors import BgtError
from bgt_core.neighbours import search as neighbours
from bgt_core.neighbours.search import Rows, approximate, exact, learn_lists, search
from tests.close import assert_close


def drawn(count: int, width: int = 12, seed: int = 0) -> np.ndarray:
    """Draw random vectors with different lengths."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(count, width)) * rng.uniform(0.1, 9, (count, 1))).astype(np.float32)


def rows(vectors: np.ndarray) -> Rows:
    return Rows(vectors, np.arange(len(vectors)))


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compute all cosines directly, in float64."""
    left, right = (
        side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left.astype(float), right.astype(float))
    )
    return left @ right.T


@pytest.mark.parametrize("block", [7, 1000])
def test_exact_is_the_sorted_cosine_matrix(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "BLOCK", block)
    left, right = drawn(40), drawn(31, seed=1)
    plan = exact(rows(left), rows(right))
    for one, other, cells in ((left, right, plan.forward), (right, left, plan.backward)):
        similar, nearest = search(rows(one), rows(other), cells, 3)
        expected = cosines(one, other)
        order = np.argsort(-expected, axis=1)[:, :3]
        np.testing.assert_array_equal(nearest, order)
        assert_close(similar, np.take_along_axis(expected, order, 1))


def test_with_fewer_candidates_than_neighbours_the_rest_is_minus_1() -> None:
    left, right = rows(drawn(3)), rows(drawn(2, seed=1))
    _, nearest = search(left, right, exact(left, right).forward, 4)
    assert np.sort(nearest[:, :2]).tolist() == [[0, 1]] * 3
    assert (nearest[:, 2:] == -1).all()


def clustered(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw `count` points in clusters. Return two versions of the points with different noise."""
    rng = np.random.default_rng(0)
    points = drawn(count // 20, 24)[rng.integers(count // 20, size=count)] + 0.4 * rng.normal(size=(count, 24))
    return tuple((points + 0.2 * rng.normal(size=points.shape)).astype(np.float32) for _ in range(2))


@pytest.mark.parametrize("wanted", [0.6, 0.9])
def test_approximate_search_has_its_recall_and_correct_cosines(wanted: float) -> None:
    left, right = clustered(3000)
    plan = approximate(rows(left), rows(right), recall=wanted)
    similar, nearest = search(rows(left), rows(right), plan.forward, 4, plan.assignments)
    matrix = cosines(left, right)
    reached = (nearest[:, 0] == matrix.argmax(1)).mean()
    assert plan.recall >= wanted
    assert reached == pytest.approx(plan.recall, abs=0.05)  # the plan measured recall on a sample
    compared_with = nearest >= 0
    assert_close(similar[compared_with], np.take_along_axis(matrix, nearest, 1)[compared_with])
    assert (np.diff(np.where(compared_with, similar, -2), axis=1) <= 0).all()
    compared = sum(len(asking) * len(held) for asking, held in plan.forward)
    assert compared < 0.2 * matrix.size


def test_no_neighbour_is_repeated() -> None:
    """An approximate search may compare two rows several times, but must return a neighbour only once."""
    left, right = clustered(1000)
    plan = approximate(rows(left), rows(right), recall=1.0)
    met = sum(len(asking) * len(held) for asking, held in plan.forward)
    pairs = {(a, b) for asking, held in plan.forward for a in asking.tolist() for b in held.tolist()}
    assert met > len(pairs)
    _, nearest = search(rows(left), rows(right), plan.forward, 4, plan.assignments)
    matrix = np.full((1000, 1000), -2.0)
    places = tuple(np.array(list(pairs)).T)
    matrix[places] = cosines(left, right)[places]
    np.testing.assert_array_equal(nearest, np.argsort(-matrix, axis=1)[:, :4])


@pytest.mark.parametrize("plan", [exact, approximate, learn_lists])
def test_vectors_of_different_widths_are_an_error(plan: object) -> None:
    with pytest.raises(BgtError, match="12 and 9 units"):
        plan(rows(drawn(5)), rows(drawn(5, 9)))


def test_with_too_few_rows_for_lists_all_pairs_are_compared() -> None:
    few, many = rows(drawn(15)), rows(drawn(40, seed=1))
    with pytest.raises(BgtError, match="15 x 40 rows are too few for an approximate search: use exact search"):
        learn_lists(few, many)
    assert str(approximate(few, many)) == "exact"
    assert len(learn_lists(rows(drawn(16)), many).centroids) == 2
