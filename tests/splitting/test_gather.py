"""Rows are held out, summed and sampled alike, in whatever batches and parts they come."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.splitting.gather import Gathered, RandomRows, gather
from tests.close import assert_close

ROWS = 1_003
RNG = np.random.default_rng(0)
COLUMNS = [RNG.standard_normal((ROWS, 4)).astype(np.float32) for _ in range(2)]


def gathered(first: int, last: int, **settings: int) -> Gathered:
    (of,) = gather(None, [(["en", "fr"], [column[first:last] for column in COLUMNS])], first=first, **settings)
    return of


def test_a_sample_has_the_smallest_keys_and_returns_the_others() -> None:
    sample, keys = RandomRows(20), RNG.permutation(100)
    returned = [
        key
        for start in range(0, 100, 7)
        for key in sample.add(keys[start : start + 7].copy(), np.arange(100)[start : start + 7])[0]
    ]
    kept, numbers = sample.rows()
    assert sorted(kept) == list(range(20)) and sorted(returned) == list(range(20, 100))
    np.testing.assert_array_equal(kept, keys[numbers])  # in the order of the numbers
    assert list(numbers) == sorted(numbers)
    assert list(RandomRows(0).add(keys, keys)[0]) == list(keys)


def test_one_row_of_each_ten_is_held_out_and_the_others_are_summed() -> None:
    of = gathered(0, ROWS)
    assert list(of.held_out_rows[:100] // 10) == list(range(100)) and len(of.held_out_rows) in (100, 101)
    assert set(of.held_out_rows % 10) == set(range(10))  # not always the same of ten
    fitted = np.setdiff1d(np.arange(ROWS), of.held_out_rows)
    assert of.total == ROWS and of.moments.count == len(fitted)
    assert_close(of.moments.mean, np.hstack(COLUMNS)[fitted].mean(0, np.float64))
    assert list(gathered(0, ROWS, seed=1).held_out_rows) != list(of.held_out_rows)


def test_samples_are_of_all_rows_and_not_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.splitting.gather.MOST_HELD_OUT", 30)
    monkeypatch.setattr("bgt_core.splitting.gather.AT_ONCE", 64)
    of = gathered(0, ROWS, keep=200)
    assert len(of.held_out_rows) == 30 and of.moments.count == ROWS - 30
    kept = of.kept.rows()[1]
    assert len(kept) == 200 and not set(kept) & set(of.held_out_rows)
    for numbers in (of.held_out_rows, kept):
        assert abs(numbers.mean() - ROWS / 2) < 4 * ROWS / np.sqrt(12 * len(numbers))
    for sample in (of.held_out, of.kept):
        langs, columns = of.sample(sample)
        assert langs == ("en", "fr")
        for column, expected in zip(columns, COLUMNS, strict=True):
            np.testing.assert_array_equal(column, expected[sample.rows()[1]])


def test_parts_that_are_merged_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.splitting.gather.MOST_HELD_OUT", 30)
    whole = gathered(0, ROWS, keep=200)
    merged = gathered(411, 1_003, keep=200).merge(gathered(0, 7, keep=200)).merge(gathered(7, 411, keep=200))
    assert merged.total == ROWS and merged.different == whole.different
    for ours, theirs in ((merged.held_out, whole.held_out), (merged.kept, whole.kept)):
        for array, expected in zip(ours.rows(), theirs.rows(), strict=True):
            np.testing.assert_array_equal(array, expected)
    assert_close(merged.moments.mean, whole.moments.mean)
    assert_close(merged.moments.scatter, whole.moments.scatter)
