"""Language information removal (Yang et al. 2021): each language loses the first principal axes of its own vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = (), rank: int = 1) -> Split:
    """Project each language's vectors onto what its `rank` largest axes, not centred, leave.

    Args:
        statistics: Of the vectors.
        held_out: Unused.
        rows: Unused.
        rank: How many axes each language loses; the first is close to its mean.
    """
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    maps = {}
    for lang, mean in statistics.means.items():
        axes = np.linalg.eigh(statistics.covariances[lang] + np.outer(mean, mean))[1][:, -rank:]
        maps[lang] = Map(none, same - axes @ axes.T, same, none)
    return Split("subspace", maps, {"rank": rank})
