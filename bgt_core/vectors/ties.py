"""The rule for equal similarities: those that differ by less than a millionth tie; ties count half."""

from __future__ import annotations

import numpy as np

from bgt_core.vectors.compare import DECIMALS, ROUNDING


def rounded(similarities: np.ndarray) -> np.ndarray:
    """Round similarities to six decimals before they are ranked or compared with a threshold, so that equal ones tie.

    Rounding alone would part values on both sides of an edge, as 0.1234564999 and 0.1234565001. Therefore values that
    differ by less than a millionth from the next ones are first set to the lowest of them; a wider run of such values
    is cut every millionth, so that dense values keep their order.

    Args:
        similarities: Numbers (N,), usually cosines.

    Returns:
        The rounded numbers, (N,) float64.
    """
    values, place = np.unique(np.asarray(similarities, np.float64), return_inverse=True)  # rising
    first = np.diff(values, prepend=-np.inf) >= ROUNDING  # of each run
    lowest = values[first][first.cumsum() - 1]
    steps = np.floor((values - lowest) / ROUNDING + 1e-3)  # rounded values, whole steps apart, stay as they are
    return (lowest + ROUNDING * steps).round(DECIMALS)[place]


def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """For each of two similarities (N,), (N,): 1 if the first is higher, 0 if it is lower, 0.5 for a tie: (N,)."""
    gains = np.asarray(first, np.float64) - second
    return np.where(np.abs(gains) < ROUNDING, 0.5, gains > 0)
