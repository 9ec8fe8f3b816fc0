"""Shift (Jang et al. 2026, arXiv 2606.18801): each language is moved onto the first, whose vectors stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Subtract from each vector the mean difference of its language and the first."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    first = statistics.means[statistics.langs[0]]
    return Split("shift", {lang: Map(mean - first, same, same, none) for lang, mean in statistics.means.items()})
