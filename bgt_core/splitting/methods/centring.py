"""Centring: the private part is the mean of the sentence's language, the shared part what differs from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Subtract from each vector the mean of its language."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    means = statistics.means.items()
    return Split("centring", {lang: Map(mean, same * ~statistics.constant(lang), same, none) for lang, mean in means})
