"""Choose the rows of an update from each part of a mixture: shares by temperature and by kind.

The size n of a corpus is its tokens, weighted by kind; the corpora share an update in proportion to n^(1/T)
(Arivazhagan et al. 2019, "Massively multilingual NMT in the wild"), and the kinds of a corpus share its part in
proportion to their tokens times their weights. With T = 1 each corpus gets its share of the tokens; the higher T, the
more equal the shares are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bgt_core.data.corpus import Stratum

ROUNDS = 6  # rounds of the Feistel network; 4 suffice for a random-looking permutation


def rows_per_epoch(strata: Sequence[Stratum], temperature: float, weights: Mapping[str, float]) -> list[int]:
    """Rows of each stratum in an epoch, at least one, so that an epoch has as many tokens as all strata together.

    `weights` are those of kinds; the default is 1.
    """
    total = sum(stratum.tokens for stratum in strata)
    counted = [stratum.tokens / total * weights.get(stratum.kind, 1.0) for stratum in strata]
    of_corpus = dict.fromkeys((stratum.columns for stratum in strata), 0.0)
    for stratum, tokens in zip(strata, counted, strict=True):
        of_corpus[stratum.columns] += tokens
    tempered = [
        tokens * of_corpus[stratum.columns] ** (1 / temperature - 1)
        for stratum, tokens in zip(strata, counted, strict=True)
    ]
    return [
        max(1, round(total * tokens / sum(tempered) * stratum.rows / stratum.tokens))
        for stratum, tokens in zip(strata, tempered, strict=True)
    ]


def draw(strata: Sequence[Stratum], counts: Sequence[int], step: int, updates: int, seed: int) -> np.ndarray:
    """The rows of update `step`, int64, if `updates` make an epoch of `counts` rows of each stratum.

    Each stratum is drawn in the order of a permutation of its rows, and then of the next permutation. So at any step,
    each of its rows was drawn as often as any other, or once more.
    """
    drawn = []
    for number, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        first, last = (count * edge // updates for edge in (step, step + 1))
        passes, places = np.divmod(np.arange(first, last), stratum.rows)
        for turn in np.unique(passes).tolist():
            drawn.append(stratum.first + permute(places[passes == turn], stratum.rows, seed, turn, number))
    return np.concatenate(drawn)


def permute(positions: np.ndarray, size: int, seed: int, epoch: int, stream: int = 0) -> np.ndarray:
    """The elements at `positions` of the permutation of range(size) that (seed, epoch, stream) names; int64, same
    shape.

    A Feistel network permutes the numbers with an even count of bits without a table; results past `size` go through it
    again until they are inside (cycle walking), which keeps it a permutation.
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([seed, epoch, stream]).generate_state(ROUNDS, np.uint64)

    def network(numbers: np.ndarray) -> np.ndarray:
        left, right = numbers >> half, numbers & mask
        for key in keys:
            left, right = right, left ^ (_mix(right ^ key) & mask)
        return left << half | right

    numbers = network(positions.astype(np.uint64))
    while (outside := numbers >= size).any():
        numbers[outside] = network(numbers[outside])
    return numbers.astype(np.int64)


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Mix every bit into all 64 (the finaliser of splitmix64; Steele et al., 2014)."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)
