"""LEACE (Belrose et al. 2023, theorem 4.3): the least change after which no linear probe tells the language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.linalg import roots
from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Erase the language from vectors of all languages, by one map that need not be told it.

    Languages count alike, however many sentences each has. The private part is what is erased, of as many dimensions as
    there are languages less 1.
    """
    means = np.stack(list(statistics.means.values()))  # (C, D)
    mean = means.mean(0)
    between = (means - mean).T  # (D, C), the covariance of vectors with the label of each language, times C
    total = np.mean(list(statistics.covariances.values()), axis=0) + between @ between.T / len(means)
    whiten, colour = roots(*np.linalg.eigh(total))
    basis, sizes, _ = np.linalg.svd(whiten @ between, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * max(sizes[0], np.finfo(float).tiny)]
    same = np.eye(statistics.width)
    erase = same - colour @ basis @ basis.T @ whiten
    return Split("leace", dict.fromkeys(statistics.langs, Map(mean, erase, same, mean)))
