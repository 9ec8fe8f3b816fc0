"""The rows that are held out, summed or sampled do not depend on the division of the data into batches and parts."""

import numpy as np
import pytest

from bgt_core.splitting.gather import Gathered, Moments, gather, statistics
from tests.close import assert_close

ROWS = 1_003
RNG = np.random.default_rng(0)
COLUMNS = [RNG.standard_normal((ROWS, 4)).astype(np.float32) for _ in range(2)]


def gathered(first: int, last: int, **settings: int) -> Gathered:
    (of,) = gather(None, [(["en", "fr"], [column[first:last] for column in COLUMNS])], first=first, **settings)
    return of


def test_one_row_of_each_ten_is_held_out_and_the_others_are_summed() -> None:
    of = gathered(0, ROWS)
    assert list(of.held_out_rows[:100] // 10) == list(range(100)) and len(of.held_out_rows) in (100, 101)
    assert set(of.held_out_rows % 10) == set(range(10))  # any of ten consecutive rows may be held out
    fitted = np.setdiff1d(np.arange(ROWS), of.held_out_rows)
    assert of.total == ROWS and of.moments.count == len(fitted)
    assert_close(of.moments.mean, np.hstack(COLUMNS)[fitted].mean(0, np.float64))
    assert list(gathered(0, ROWS, seed=1).held_out_rows) != list(of.held_out_rows)


def test_merged_parts_equal_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.splitting.gather.MOST_HELD_OUT", 30)
    whole = gathered(0, ROWS, keep=200)
    merged = gathered(411, 1_003, keep=200).merge(gathered(0, 7, keep=200)).merge(gathered(7, 411, keep=200))
    assert merged.total == ROWS and merged.different == whole.different
    for ours, theirs in ((merged.held_out, whole.held_out), (merged.kept, whole.kept)):
        for array, expected in zip(ours.rows(), theirs.rows(), strict=True):
            np.testing.assert_array_equal(array, expected)
    assert_close(merged.moments.mean, whole.moments.mean)
    assert_close(merged.moments.scatter, whole.moments.scatter)


ENGLISH, FRENCH, OTHER = (1e4 + RNG.standard_normal((300, 4)) for _ in range(3))
DIGITS = 1e-9  # tolerance, because NumPy's variance loses 7 or 8 of 16 digits if means are so large


def summed(langs: list[str], columns: list[np.ndarray], size: int) -> Moments:
    moments = Moments(langs, 4)
    for start in range(0, len(columns[0]) + size, size):
        moments.add(np.hstack([column[start : start + size] for column in columns]))
    return moments


def test_moments_of_batches_and_parts_are_those_of_all_rows() -> None:
    """No precision is lost if the mean is 10,000 times the standard deviation, and an empty batch changes nothing."""
    parts = [summed(["en", "fr"], [ENGLISH[of], FRENCH[of]], 7) for of in (slice(0, 100), slice(100, None))]
    whole, other = parts
    whole.merge(other.count, other.mean, other.scatter)
    rows = np.hstack([ENGLISH, FRENCH])
    assert whole.count == 300
    np.testing.assert_allclose(whole.mean, rows.mean(0), rtol=1e-14)
    assert_close(whole.scatter / 300, np.cov(rows.T, bias=True), DIGITS)


def test_statistics_of_a_language_are_over_the_rows_of_all_files() -> None:
    sums = statistics([summed(["en", "fr"], [ENGLISH, FRENCH], 50), summed(["de", "en"], [OTHER, FRENCH + 2], 50)])
    english = np.concatenate([ENGLISH, FRENCH + 2])
    assert sums.langs == ("en", "fr", "de") and sums.width == 4
    np.testing.assert_allclose(sums.means["en"], english.mean(0))
    assert_close(sums.covariances["en"], np.cov(english.T, bias=True), DIGITS)
    expected = (OTHER - OTHER.mean(0)).T @ (FRENCH + 2 - english.mean(0)) / 300
    assert_close(sums.crosses["de", "en"], expected, DIGITS)
    assert_close(sums.crosses["en", "de"], expected.T, DIGITS)
