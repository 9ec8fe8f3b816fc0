"""Means and covariances of vectors that belong together, summed batch by batch in memory that does not grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

HeldOut = tuple[Sequence[str], Sequence[np.ndarray]]  # the languages of some columns, and (N, D) for each


class Moments:
    """Count, mean and scatter of rows that join one vector of each column, (columns x D) units in float64.

    Batches are added by the update of Chan, Golub and LeVeque (1983), so that large means cost no digits. Sums of parts
    of a file, made in several processes, are merged by the same update.

    Args:
        langs: The language of each column; paraphrases of one language repeat it.
        width: Units D of a vector.
    """

    def __init__(self, langs: Sequence[str], width: int):
        self.langs, self.width, self.count = tuple(langs), width, 0
        self.mean = np.zeros(len(langs) * width)
        self.scatter = np.zeros((len(self.mean), len(self.mean)))  # summed outer products, less the mean's

    def add(self, columns: Sequence[np.ndarray]) -> None:
        """Add N rows: an array (N, D) for each column."""
        rows = np.concatenate(columns, axis=1).astype(np.float64, copy=False)
        if not len(rows):
            return
        mean = rows.mean(0)
        rows = rows - mean
        self._merge(len(rows), mean, rows.T @ rows)

    def merge(self, other: Moments) -> Moments:
        """Add all that `other`, of the same columns and width, was given."""
        if other.count:
            self._merge(other.count, other.mean, other.scatter)
        return self

    def _merge(self, count: int, mean: np.ndarray, scatter: np.ndarray) -> None:
        total, apart = self.count + count, mean - self.mean
        self.mean = self.mean + apart * (count / total)
        self.scatter += scatter + np.outer(apart, apart) * (self.count * count / total)
        self.count = total

    def block(self, column: int) -> slice:
        """The units of a column."""
        return slice(column * self.width, (column + 1) * self.width)


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a method fits: of each language and of each two that have pairs. Covariances are (D, D), in float64."""

    counts: dict[str, int]  # sentences of a language
    means: dict[str, np.ndarray]  # (D,)
    covariances: dict[str, np.ndarray]
    pairs: dict[tuple[str, str], int]  # in both orders; (l, l) where paraphrases are given
    crosses: dict[tuple[str, str], np.ndarray]  # E[(x - mean of l) (y - mean of m)^T], the transpose under (m, l)

    @property
    def langs(self) -> tuple[str, ...]:
        return tuple(self.means)

    @property
    def width(self) -> int:
        return len(next(iter(self.means.values())))

    def constant(self, lang: str) -> np.ndarray:
        """Units that are constant in a language but for rounding error, (D,) of booleans. Without its mean, the error
        is left: it may tell the language."""
        return np.sqrt(self.covariances[lang].diagonal()) <= 1e-7 * np.abs(self.means[lang])


def statistics(moments: Iterable[Moments]) -> Statistics:
    """Pool the sums of several files, which may have different columns and different means.

    Args:
        moments: One for each file, of one width; every language has at least one row.

    Returns:
        The statistics of all rows together; a language in two columns has the sentences of both.
    """
    parts = [(part, column, lang) for part in moments for column, lang in enumerate(part.langs)]
    langs = list(dict.fromkeys(lang for _, _, lang in parts))
    counts = {lang: sum(part.count for part, _, each in parts if each == lang) for lang in langs}
    means = {
        lang: reduce(np.add, (part.mean[part.block(i)] * part.count for part, i, each in parts if each == lang))
        / counts[lang]
        for lang in langs
    }
    covariances = {
        lang: reduce(np.add, (about(part, i, i, means) for part, i, each in parts if each == lang)) / counts[lang]
        for lang in langs
    }
    pairs: dict[tuple[str, str], int] = {}
    crosses: dict[tuple[str, str], np.ndarray] = {}
    for part, i, left in parts:
        for j, right in enumerate(part.langs):
            if i != j:
                pairs[left, right] = pairs.get((left, right), 0) + part.count
                crosses[left, right] = crosses.get((left, right), 0) + about(part, i, j, means)
    return Statistics(counts, means, covariances, pairs, {key: crosses[key] / pairs[key] for key in crosses})


def about(part: Moments, left: int, right: int, means: dict[str, np.ndarray]) -> np.ndarray:
    """Two columns' summed outer products about the means of their languages, (D, D)."""
    rows, columns = part.block(left), part.block(right)
    apart = part.mean[rows] - means[part.langs[left]], part.mean[columns] - means[part.langs[right]]
    return part.scatter[rows, columns] + part.count * np.outer(*apart)
