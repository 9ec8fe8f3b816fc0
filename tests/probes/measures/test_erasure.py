"""Erasure, where the theorems say what is left."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bgt_core.vectors.linear_probe import LinearProbe
from probes.measures import erasure
from probes.measures.erasure import Eraser, column_space, inlp, leace, random_directions
from tests.close import FLOAT32, FLOAT64, assert_close


def planted(items: int = 3_000, width: int = 12, seed: int = 0, oblique: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Three unequal clouds; means differ in two directions, and other directions are correlated with these."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, items, p=[0.5, 0.3, 0.2])
    vectors = rng.standard_normal((items, width))
    vectors[:, :3] += 3 * np.eye(3)[labels]
    mixing = np.random.default_rng(9).standard_normal((width, width)) if oblique else np.eye(width)
    return vectors @ mixing + 4, labels


@pytest.fixture(scope="module")
def eraser() -> Eraser:
    return leace(*planted())


def test_after_leace_no_linear_probe_beats_the_majority(eraser: Eraser) -> None:
    vectors, labels = planted()
    assert LinearProbe().fit(vectors, labels).score(vectors, labels) > 0.9
    erased = eraser(vectors)
    told = np.eye(3)[labels]
    theorem = (erased - erased.mean(0)).T @ (told - told.mean(0)) / len(labels)
    assert_close(theorem, 0, scale=vectors.std())
    # hardly a penalty, on its own training items
    best = LogisticRegression(C=1e6, tol=1e-8, max_iter=10_000).fit(erased, labels)
    shares = np.bincount(labels) / len(labels)
    assert best.predict_proba(erased) == pytest.approx(np.tile(shares, (len(labels), 1)), abs=1e-3)
    assert best.score(erased, labels) == shares.max()


def test_no_axis_of_a_small_feature_is_lost() -> None:
    """Features of scales from 1e-4 to 1e4: what a standardising probe reads goes all the same."""
    vectors, labels = planted(oblique=False)
    scales = np.geomspace(1e-4, 1e4, vectors.shape[1])
    constant = np.full((len(vectors), 1), 1e3)
    scaled = np.hstack([vectors * scales, constant])
    erased = leace(scaled, labels)(scaled)
    assert_close(erased[:, :-1] / scales, leace(vectors, labels)(vectors))
    np.testing.assert_array_equal(erased[:, -1:], constant)
    read = LogisticRegression(C=1e6, max_iter=10_000).fit(erased[:, :-1] / scales, labels)
    assert read.score(erased[:, :-1] / scales, labels) == (labels == 0).mean()


def test_leace_changes_no_more_than_it_must(eraser: Eraser) -> None:
    """Any other affine map that leaves no cross-covariance moves the vectors further; among them the projection."""
    vectors, labels = planted()
    moved = np.square(eraser(vectors) - vectors).sum(1).mean()
    assert eraser.rank == 2
    told = np.eye(3)[labels] - np.bincount(labels) / len(labels)
    cross = (vectors - vectors.mean(0)).T @ told
    basis = np.linalg.svd(cross, full_matrices=False)[0][:, :2]
    orthogonal = Eraser(vectors.mean(0), basis, basis)
    rng = np.random.default_rng(0)
    size = len(vectors) * vectors.std()
    assert_close((orthogonal(vectors) - vectors.mean(0)).T @ told, 0, scale=size)  # it guards as well
    assert moved < np.square(orthogonal(vectors) - vectors).sum(1).mean()
    for _ in range(20):  # the same kernel, another complement: oblique projections
        write = basis + 0.3 * rng.standard_normal(basis.shape)
        oblique = Eraser(vectors.mean(0), basis @ np.linalg.inv(basis.T @ write).T, write)
        back = (oblique(vectors) - vectors.mean(0)).T @ told
        assert np.abs(back).max() > FLOAT64 * size or moved < np.square(oblique(vectors) - vectors).sum(1).mean()
    again = eraser(eraser(vectors))
    assert_close(again, eraser(vectors))  # a projection


def test_leace_is_the_optimum_that_lagrange_gives(eraser: Eraser) -> None:
    """Least squares under P S_xz = 0, solved as a linear system: P = I - S_xz (S_xzᵀ S_xx⁻¹ S_xz)⁺ S_xzᵀ S_xx⁻¹."""
    vectors, labels = planted()
    centred, told = vectors - vectors.mean(0), np.eye(3)[labels] - np.bincount(labels) / len(labels)
    cross, inverse = centred.T @ told / len(labels), np.linalg.inv(centred.T @ centred / len(labels))
    projection = np.eye(12) - cross @ np.linalg.pinv(cross.T @ inverse @ cross, rcond=1e-9) @ cross.T @ inverse
    assert_close(eraser(vectors) - vectors.mean(0), centred @ projection.T)


def test_leace_of_vectors_that_fill_no_space() -> None:
    vectors, labels = planted(width=4)
    flat = np.hstack([vectors, vectors[:, :2], np.ones((len(vectors), 1))]).astype(np.float32)
    erased = leace(flat, labels)(flat)
    assert erased.dtype == np.float32
    told = np.eye(3)[labels] - np.bincount(labels) / len(labels)
    assert_close(erased.astype(np.float64).T @ told / len(labels), 0, FLOAT32, scale=flat.std())
    assert (erased[:, -1] == 1).all()


def test_inlp_ends_at_the_majority_and_random_directions_do_not() -> None:
    (vectors, labels), dev = planted(oblique=False), planted(seed=1, oblique=False)
    eraser = inlp(vectors, labels, dev)
    assert 2 <= eraser.rank <= 6
    assert_close(eraser.read.T @ eraser.read, np.eye(eraser.rank))
    left = LinearProbe().fit(eraser(vectors), labels).score(eraser(dev[0]), dev[1])
    control = random_directions(vectors, eraser.rank, seed=0)
    kept = LinearProbe().fit(control(vectors), labels).score(control(dev[0]), dev[1])
    assert control.rank == eraser.rank
    assert left <= (dev[1] == 0).mean() + 0.02
    assert kept > left + 0.2


def test_labels_that_vectors_do_not_hold_need_no_erasing_by_inlp() -> None:
    vectors, labels = planted()
    mixed = np.random.default_rng(0).permutation(labels)
    eraser = inlp(vectors[:2_000], mixed[:2_000], (vectors[2_000:], mixed[2_000:]))
    assert eraser.rank == 0
    assert (eraser(vectors) == vectors).all()


def small(items: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three unequal clouds of float32 in six units of other scales and places."""
    vectors, labels = planted(items, 6, seed, oblique=False)
    return ((vectors + np.arange(6)) * np.geomspace(0.1, 10, 6)).astype(np.float32), labels


def test_units_that_hardly_vary_and_axes_that_are_nearly_one_are_erased_too() -> None:
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.arange(300) % 2)
    noise, more = rng.standard_normal((2, 300))
    still = [np.full(300, 5.0), np.full(300, 0.1)]
    assert np.std(still[1]) > 0  # by rounding alone
    units = {  # of the label and noise as large: in one unit that hardly varies, or between two that are alike
        "little": ([noise, 1e3 + 1e-7 * (labels + more), *still], np.array([0.0, 1.0, 0, 0])),
        "alike": ([noise, noise + 1e-4 * (labels + more), *still], np.array([-1.0, 1.0, 0, 0])),
    }
    for columns, axis in units.values():
        vectors = np.column_stack(columns)
        eraser = leace(vectors, labels)
        erased = eraser(vectors)
        assert eraser.rank == 1
        assert (
            abs(np.corrcoef(vectors @ axis, labels)[0, 1]) > 0.4 > 1e-3 > abs(np.corrcoef(erased @ axis, labels)[0, 1])
        )
        np.testing.assert_array_equal(erased[:, 2:], vectors[:, 2:])


@pytest.mark.parametrize(("apart", "erased"), [(3e-5, True), (3e-6, False)])
def test_a_direction_below_a_millionth_of_the_largest_is_taken_for_rounding(apart: float, erased: bool) -> None:
    """50 units are alike but for one, and all that tells of the label is how that one differs."""
    rng = np.random.default_rng(6)
    labels = rng.permutation(np.arange(300) % 2)
    noise, more = rng.standard_normal((2, 300))
    vectors = np.column_stack([noise] * 49 + [noise + apart * (labels + more)])
    # the largest singular value is about sqrt(50) = 7 of one unit's; the smallest that counts is 7e-6
    after = leace(vectors, labels)(vectors)
    left = np.corrcoef(after[:, 49] - after[:, 0], labels)[0, 1]
    assert left == pytest.approx(0.0 if erased else np.corrcoef(labels + more, labels)[0, 1], abs=0.01)
    assert np.corrcoef(labels + more, labels)[0, 1] > 0.4


def test_inlp_ends_within_a_point_of_the_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    (vectors, labels), dev = small(), (small()[0][:100], np.arange(100) % 2)  # label 0 is half of dev
    monkeypatch.setattr(erasure, "MAX_ROUNDS", 1)
    monkeypatch.setattr(LinearProbe, "score", lambda *given: 0.5 + erasure.MARGIN)
    assert inlp(vectors, labels, dev).rank == 0
    monkeypatch.setattr(LinearProbe, "score", lambda *given: 0.5 + 1.01 * erasure.MARGIN)
    assert inlp(vectors, labels, dev).rank > 0


def test_inlp_removes_nothing_for_what_all_scores_have_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector added to the weights of all labels changes no probability, so it changes no direction either."""
    (vectors, labels), dev = small(60), small(40, seed=1)
    monkeypatch.setattr(erasure, "MAX_ROUNDS", 1)
    plain = inlp(vectors, labels, dev)

    class Shifted(LinearProbe):
        def fit(self, X: np.ndarray, y: np.ndarray, dev: tuple[np.ndarray, np.ndarray] | None = None) -> LinearProbe:
            super().fit(X, y, dev)
            self.layers_ = [(weights + np.arange(1.0, 7)[:, None], *rest) for weights, *rest in self.layers_]
            return self

    monkeypatch.setattr(erasure, "LinearProbe", Shifted)
    shifted = inlp(vectors, labels, dev)
    assert shifted.rank == plain.rank == 2
    assert_close(shifted.read @ shifted.read.T, plain.read @ plain.read.T)


def test_inlp_reads_what_a_probe_does_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    (vectors, labels), dev = small(), small(120, seed=1)
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    class Watched(LinearProbe):
        def fit(self, X: np.ndarray, y: np.ndarray, dev: tuple[np.ndarray, np.ndarray] | None = None) -> LinearProbe:
            assert dev is not None
            seen.append((X, dev[0]))
            return super().fit(X, y, dev)

    monkeypatch.setattr(erasure, "LinearProbe", Watched)
    monkeypatch.setattr(erasure, "MAX_ROUNDS", 1)
    once = inlp(vectors, labels, dev)
    np.testing.assert_allclose(once.mean, vectors.astype(np.float64).mean(0), rtol=1e-12)
    probe = LinearProbe().fit(vectors, labels, dev)
    directions = np.linalg.svd(probe.layers_[0][0] / probe.scale_[:, None])[0][:, :2]  # three classes: two directions
    assert_close(once.read @ once.read.T, directions @ directions.T)
    monkeypatch.setattr(erasure, "MAX_ROUNDS", 2)
    twice = inlp(vectors, labels, dev)
    for given, whole in zip(seen[-1], (vectors, dev[0]), strict=True):
        assert_close(given, once(whole))
    assert twice.rank in (3, 4)
    assert_close(twice.read @ (twice.read.T @ once.read), once.read)
    assert_close(twice.read.T @ twice.read, np.eye(twice.rank))


def test_inlp_ends_at_the_share_of_the_most_frequent_label() -> None:
    vectors = np.random.default_rng(5).standard_normal((400, 3))
    labels = (np.arange(400) % 5 == 0).astype(int)
    assert inlp(vectors[:300], labels[:300], (vectors[300:], labels[300:])).rank == 0


def test_random_directions_are_of_the_seed_around_the_mean() -> None:
    vectors, _ = small()
    one, again, other = (random_directions(vectors, 2, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.read, again.read)
    assert one.rank == 2 and np.abs(one.read - other.read).max() > 0.1
    np.testing.assert_allclose(one.mean, vectors.astype(np.float64).mean(0), rtol=1e-12)
    assert_close(one.read.T @ one.read, np.eye(2))


@pytest.mark.parametrize(("values", "rank"), [([100.0, 1e-5], 1), ([1e-8, 1e-9], 2), ([1.0, 1e-5], 2), ([0.0, 0.0], 0)])
def test_columns_count_beside_the_largest(values: list[float], rank: int) -> None:
    assert column_space(np.diag(values)).shape == (2, rank)
    assert column_space(np.zeros((4, 0))).shape == (4, 0)


def test_constant_units_and_units_of_a_tiny_scale_do_not_disturb_leace() -> None:
    vectors, labels = planted()
    vectors -= vectors.mean(0)
    scales = np.geomspace(1e-9, 1, vectors.shape[1])
    constant = np.tile([0.0, 5.0], (len(vectors), 1))
    erased = leace(np.hstack([vectors * scales, constant]), labels)(np.hstack([vectors * scales, constant]))
    assert_close(erased[:, :-2] / scales, leace(vectors, labels)(vectors))
    np.testing.assert_array_equal(erased[:, -2:], constant)


def test_a_unit_that_is_the_label_leaves_no_rounding_error_to_tell_it() -> None:
    labels = np.arange(300) % 2
    noise = np.random.default_rng(0).standard_normal((300, 3)) * [1e-3, 1, 1e3]
    for kind in (np.float32, np.float64):
        vectors = np.column_stack([2 * labels - 1, noise + 0.3 * labels[:, None]]).astype(kind)
        erased = leace(vectors, labels)(vectors)
        assert np.ptp(erased[:, 0]) == 0
        assert LinearProbe().fit(erased, labels).score(erased, labels) < 0.6
