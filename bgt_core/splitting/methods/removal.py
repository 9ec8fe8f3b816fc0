"""Methods that take the language out of vectors; they need no pairs, only sentences of several languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bgt_core.splitting.moments import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split
from bgt_core.vectors import leace as closed_form


def centring(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Subtract from each vector the mean of its language, which is the private part."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    means = statistics.means.items()
    return Split("centring", {lang: Map(mean, same * ~statistics.constant(lang), same, none) for lang, mean in means})


def shift(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Move each language onto the first, whose vectors stay as they are (Jang et al. 2026, arXiv 2606.18801)."""
    same, maps = np.eye(statistics.width), {}
    first = statistics.means[statistics.langs[0]]
    for lang, mean in statistics.means.items():
        constant = statistics.constant(lang)
        maps[lang] = Map(mean - first, same * ~constant, same, first * constant)
    return Split("shift", maps)


def leace(statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = ()) -> Split:
    """Make the smallest change after which no linear probe tells the language (Belrose et al. 2023, theorem 4.3).

    One map serves all languages and need not be told them. Languages count alike, however many sentences each has. The
    private part is what is erased, of as many dimensions as there are languages less 1.
    """
    means = np.stack(list(statistics.means.values()))  # (C, D)
    mean = means.mean(0)
    between = (means - mean).T / np.sqrt(len(means))  # (D, C), the covariance with each language by its share's root
    total = np.mean(list(statistics.covariances.values()), axis=0) + between @ between.T
    read, write, gone = closed_form.leace(mean, total, between)
    same = np.eye(statistics.width)
    erase = same - write @ read.T
    erase[gone] = 0
    return Split("leace", dict.fromkeys(statistics.langs, Map(mean, erase, same, mean)))


def subspace(
    statistics: Statistics, held_out: Sequence[HeldOut] = (), rows: Sequence[HeldOut] = (), rank: int = 1
) -> Split:
    """Take from each language the first principal axes of its own vectors (Yang et al. 2021).

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
