"""Shift (Jang et al. 2026, arXiv 2606.18801): each language is moved onto the first, whose vectors stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Subtract from each vector the mean difference of its language and the first."""
    same, maps = np.eye(statistics.width), {}
    first = statistics.means[statistics.langs[0]]
    for lang, mean in statistics.means.items():
        constant = statistics.constant(lang)
        maps[lang] = Map(mean - first, same * ~constant, same, first * constant)
    return Split("shift", maps)
