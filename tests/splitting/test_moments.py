"""Sums of batches and of parts are the moments of all rows."""

from __future__ import annotations

import numpy as np

from bgt_core.splitting.moments import Moments, statistics
from tests.close import assert_close

RNG = np.random.default_rng(0)
ENGLISH, FRENCH, OTHER = (1e4 + RNG.standard_normal((300, 4)) for _ in range(3))
DIGITS = 1e-9  # a mean of 10,000 costs its square: seven or eight of sixteen


def summed(langs: list[str], columns: list[np.ndarray], size: int) -> Moments:
    moments = Moments(langs, 4)
    for start in range(0, len(columns[0]) + size, size):
        moments.add([column[start : start + size] for column in columns])
    return moments


def test_batches_and_parts_sum_to_the_moments_of_all() -> None:
    """A mean of 10,000 standard deviations costs no digits; an empty batch changes nothing."""
    parts = [summed(["en", "fr"], [ENGLISH[of], FRENCH[of]], 7) for of in (slice(0, 100), slice(100, None))]
    whole = parts[0].merge(parts[1])
    rows = np.hstack([ENGLISH, FRENCH])
    assert whole.count == 300
    np.testing.assert_allclose(whole.mean, rows.mean(0), rtol=1e-14)
    assert_close(whole.scatter / 300, np.cov(rows.T, bias=True), DIGITS)


def test_a_language_of_two_files_has_the_sentences_of_both() -> None:
    sums = statistics([summed(["en", "fr"], [ENGLISH, FRENCH], 50), summed(["de", "en"], [OTHER, FRENCH + 2], 50)])
    english = np.concatenate([ENGLISH, FRENCH + 2])
    assert sums.langs == ("en", "fr", "de") and sums.width == 4
    assert sums.counts == {"en": 600, "fr": 300, "de": 300}
    np.testing.assert_allclose(sums.means["en"], english.mean(0))
    assert_close(sums.covariances["en"], np.cov(english.T, bias=True), DIGITS)
    expected = (OTHER - OTHER.mean(0)).T @ (FRENCH + 2 - english.mean(0)) / 300
    assert_close(sums.crosses["de", "en"], expected, DIGITS)
    assert_close(sums.crosses["en", "de"], expected.T, DIGITS)
    assert sums.pairs == {("en", "fr"): 300, ("fr", "en"): 300, ("de", "en"): 300, ("en", "de"): 300}


def test_paraphrases_are_counted_in_both_orders() -> None:
    sums = statistics([summed(["en", "en"], [ENGLISH, FRENCH], 50)])
    both = np.concatenate([ENGLISH, FRENCH])
    cross = (ENGLISH - both.mean(0)).T @ (FRENCH - both.mean(0)) / 300
    assert_close(sums.crosses["en", "en"], (cross + cross.T) / 2, DIGITS)
    assert_close(sums.covariances["en"], np.cov(both.T, bias=True), DIGITS)
