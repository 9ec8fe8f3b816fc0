"""Online codelength of labels given vectors (Voita & Titov, 2020, sec. 2.2.2).

Labels are sent in blocks. The first is sent at log2 K bits per label; each later one with a probe trained on all before
it. A property that is easy to learn costs few bits, because few labels suffice. Everything about a probe, its strength
included, is chosen within the prefix.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from probes.measures.information import bits, share_bits
from probes.measures.measure import ProbeFactory

SCHEDULE = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50, 100)  # percent of the items that end each block
SHUFFLES = 3


@dataclass(frozen=True)
class Codelength:
    """Bits for all N labels; means over shuffles."""

    bits: float
    uniform: float  # N log2 K
    compression: float  # uniform / bits
    blocks: list[list[float]]  # bits of each block, a list for each shuffle


def block_boundaries(items: int) -> list[int]:
    """Number of items sent at the end of each block; empty blocks are left out."""
    boundaries = sorted({math.ceil(items * percent / 100) for percent in SCHEDULE})
    return [*boundaries[:-1], items]


def codelength(
    make: ProbeFactory,
    vectors: np.ndarray,
    labels: np.ndarray,
    groups: Sequence[int] | np.ndarray,
    classes: int,
    shuffles: int = SHUFFLES,
    seed: int = 0,
) -> Codelength:
    """The online code of (N,) labels, of `classes` kinds, given (N, D) vectors; `make(seed)` gives a new probe.

    Whole groups are shuffled, so that versions of a sentence stay together. While a prefix has only one label, its
    share is the probe.
    """
    sizes = []  # bits of each block, for each shuffle
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    for shuffle in range(shuffles):
        rng = np.random.default_rng((seed, shuffle))
        order = np.argsort(rng.permutation(len(names))[group], kind="stable")
        boundaries = block_boundaries(len(labels))
        blocks = [boundaries[0] * math.log2(classes)]
        for begin, end in itertools.pairwise(boundaries):
            before, block = order[:begin], order[begin:end]
            known = np.unique(labels[before])
            if len(known) < 2:
                cost = share_bits(labels[before], labels[block], classes)
            else:
                probe = make(shuffle)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    probe.fit(vectors[before], labels[before])
                cost = bits(probe.predict_log_proba(vectors[block]), probe.classes_, labels[block], classes, begin)
            blocks.append(float(cost.sum()))
        sizes.append(blocks)
    total, uniform = float(np.mean([sum(blocks) for blocks in sizes])), len(labels) * math.log2(classes)
    return Codelength(total, uniform, uniform / total, sizes)
