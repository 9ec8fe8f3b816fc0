"""LEACE (Belrose et al. 2023, theorem 4.3): the least change after which no linear probe tells the language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split
from bgt_core.vectors.leace import leace


def fit(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Erase the language from vectors of all languages, by one map that need not be told it.

    Languages count alike, however many sentences each has. The private part is what is erased, of as many dimensions as
    there are languages less 1.
    """
    means = np.stack(list(statistics.means.values()))  # (C, D)
    mean = means.mean(0)
    between = (means - mean).T / np.sqrt(len(means))  # (D, C), the covariance with each language by its share's root
    total = np.mean(list(statistics.covariances.values()), axis=0) + between @ between.T
    read, write, gone = leace(mean, total, between)
    same = np.eye(statistics.width)
    erase = same - write @ read.T
    erase[gone] = 0
    return Split("leace", dict.fromkeys(statistics.langs, Map(mean, erase, same, mean)))
