"""Sum the means and covariances of vectors in several columns, batch by batch, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from zlib import crc32

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.convert import holds_vectors, listed, matrix, numbers

HeldOut = tuple[Sequence[str], Sequence[np.ndarray]]  # the languages of some columns, and their vectors, (N, D) each


class Moments:
    """Count, mean and scatter of rows, in float64. A row is one vector of each column: columns x D units.

    Batches are added by the update of Chan, Golub and LeVeque (1983), so that large means cost no precision. The same
    update merges the sums of parts of a file, from several processes.

    Args:
        langs: The language of each column; paraphrases of one language repeat it.
        width: Units D of a vector.
    """

    def __init__(self, langs: Sequence[str], width: int):
        self.langs, self.width, self.count = tuple(langs), width, 0
        self.mean = np.zeros(len(langs) * width)
        self.scatter = np.zeros((len(self.mean), len(self.mean)))  # sum of the outer products of centred rows

    def add(self, rows: np.ndarray) -> None:
        """Add N rows, (N, columns x D)."""
        if len(rows):
            rows = rows.astype(np.float64)
            mean = rows.mean(0)
            rows -= mean
            self.merge(len(rows), mean, rows.T @ rows)

    def merge(self, count: int, mean: np.ndarray, scatter: np.ndarray) -> None:
        """Add rows that were summed elsewhere."""
        total, apart = self.count + count, mean - self.mean
        if count:
            self.mean = self.mean + apart * (count / total)
            self.scatter += scatter + np.outer(apart, apart) * (self.count * count / total)
            self.count = total

    def block(self, column: int) -> slice:
        """Return the slice of a column's units."""
        return slice(column * self.width, (column + 1) * self.width)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The input of a method: statistics of each language, and of each two with pairs. Covariances: (D, D) float64."""

    means: dict[str, np.ndarray]  # (D,)
    covariances: dict[str, np.ndarray]
    # E[(x - mean of l) (y - mean of m)^T] under (l, m), in both orders; under (l, l) for paraphrases
    crosses: dict[tuple[str, str], np.ndarray]

    @property
    def langs(self) -> tuple[str, ...]:
        return tuple(self.means)

    @property
    def width(self) -> int:
        return len(next(iter(self.means.values())))

    def constant(self, lang: str) -> np.ndarray:
        """Mark the units that are constant in a language except for rounding error, (D,) bool. After centring, this
        error could reveal the language."""
        return np.sqrt(self.covariances[lang].diagonal()) <= 1e-7 * np.abs(self.means[lang])


def statistics(moments: Iterable[Moments]) -> Statistics:
    """Pool the sums of several files, which may have different columns and different means.

    Args:
        moments: The sums of each file, all of one width; every language has at least one row.

    Returns:
        The statistics of all rows together. If two columns have the same language, both count.
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
    return Statistics(means, covariances, {key: crosses[key] / pairs[key] for key in crosses})


def about(part: Moments, left: int, right: int, means: dict[str, np.ndarray]) -> np.ndarray:
    """Sum the outer products of two columns, centred by the means of their languages, (D, D)."""
    rows, columns = part.block(left), part.block(right)
    apart = part.mean[rows] - means[part.langs[left]], part.mean[columns] - means[part.langs[right]]
    return part.scatter[rows, columns] + part.count * np.outer(*apart)


# Sums and random samples of the rows' vectors, in constant memory.

Column = Sequence[str] | np.ndarray  # N sentences, or vectors (N, D) of any kind that `vectors.convert` takes
Columns = Sequence[Column]
Data = tuple[Sequence[str], Columns | Iterator[Columns]]  # languages; columns, whole or in batches

AT_ONCE = 4_096  # rows embedded together
ONE_IN, MOST_HELD_OUT = 10, 4_000  # one of ten rows is held out, up to this maximum
OF_WIDTH = 2  # minimum number of sentences per unit, to estimate covariances
MOST_UNITS = 4_096  # with more, eigenvectors take minutes, and sums of two columns take half a gigabyte


class RandomRows:
    """The `most` rows with the smallest keys. If keys are random, so is the sample, however rows are batched."""

    def __init__(self, most: int):
        self.most, self.count = most, 0
        self.arrays: list[np.ndarray] = []  # keys and other arrays: `most` rows, `count` of them used

    def add(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Add rows; return those that do not enter the sample, or leave it. The first array, (N,), has their keys.

        The given arrays are overwritten.
        """
        if not self.arrays:
            self.arrays = [np.empty((self.most, *array.shape[1:]), array.dtype) for array in arrays]
        taken = min(self.most - self.count, len(arrays[0]))
        for own, array in zip(self.arrays, arrays, strict=True):
            own[self.count : self.count + taken] = array[:taken]
        self.count += taken
        rest = [array[taken:] for array in arrays]
        if self.most and len(rest[0]):
            largest = np.argpartition(np.concatenate([self.arrays[0], rest[0]]), self.most - 1)[self.most :]
            leaving = largest[largest < self.most]
            entering = np.setdiff1d(np.arange(len(rest[0])), largest - self.most)
            for own, array in zip(self.arrays, rest, strict=True):
                own[leaving], array[entering] = array[entering], own[leaving]
        return rest

    def rows(self) -> list[np.ndarray]:
        """Return the arrays of the sample, sorted by the second array."""
        order = np.argsort(self.arrays[1][: self.count])
        return [array[order] for array in self.arrays]


class Gathered:
    """Sums and samples of the rows of some columns.

    A row is either held out, or summed and offered to the training sample. This depends on its number and the seed
    alone, so several processes can gather parts of a file, and the merged result is that of the whole file.

    Args:
        langs: The language of each column; paraphrases of one language repeat it.
        width: Units D of a vector.
        keep: Maximum size of the training sample.
        most_held_out: Maximum size of the held-out sample.
        seed: Seed of both samples.
    """

    def __init__(self, langs: Sequence[str], width: int, keep: int, most_held_out: int, seed: int):
        self.seed, self.total = seed, 0
        self.moments, self.held_out, self.kept = Moments(langs, width), RandomRows(most_held_out), RandomRows(keep)
        self.different: dict[str, set[int]] = {lang: set() for lang in langs}  # hashes, at most as many as are needed

    def add(self, first: int, columns: Columns, vectors: Sequence[np.ndarray]) -> None:
        """Add N rows; errors as `gather`.

        Args:
            first: The number of the first row.
            columns: The columns that were embedded.
            vectors: (N, D) for each column.
        """
        checked = []
        for lang, column, of in zip(self.langs, columns, vectors, strict=True):
            texts = () if isinstance(column, np.ndarray) else column
            checked.append(matrix(of, f"{'-'.join(self.langs)}, {lang}", texts=texts, first=first))
            if len(self.different[lang]) < needed_rows(self.moments.width):
                self.different[lang].update(
                    crc32(each.encode() if isinstance(each, str) else each.tobytes()) for each in column
                )
        rows = np.concatenate(checked, axis=1)  # (N, columns x D)
        self.total += len(rows)
        numbers = np.arange(first, first + len(rows))
        keys = draw([self.seed], first, len(rows))
        block = first // ONE_IN
        places = draw([self.seed, 1], block, numbers[-1] // ONE_IN - block + 1)[numbers // ONE_IN - block]
        held_out = (places * ONE_IN).astype(int) == numbers % ONE_IN  # one row of each ten
        self._sum(keys[~held_out], numbers[~held_out], rows[~held_out])
        self._sum(*self.held_out.add(keys[held_out], numbers[held_out], rows[held_out]))

    def merge(self, other: Gathered) -> Gathered:
        """Add the result of another process, from other rows of the same columns."""
        self.total += other.total
        for lang, different in self.different.items():
            different |= other.different[lang]
        self.moments.merge(other.moments.count, other.moments.mean, other.moments.scatter)
        self.kept.add(*other.kept.rows())
        self._sum(*self.held_out.add(*other.held_out.rows()))
        return self

    def _sum(self, keys: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> None:
        self.moments.add(rows)
        self.kept.add(keys, numbers, rows)

    @property
    def langs(self) -> Sequence[str]:
        return self.moments.langs

    @property
    def held_out_rows(self) -> np.ndarray:
        """The numbers of the rows held out."""
        return self.held_out.rows()[1]

    def sample(self, of: RandomRows) -> HeldOut:
        """Return the languages and vectors of a sample, `held_out` or `kept`."""
        return self.langs, np.split(of.rows()[2], len(self.langs), axis=1)


def draw(seed: Sequence[int], first: int, count: int) -> np.ndarray:
    """Return numbers `first` to `first + count - 1` of a seeded sequence of random numbers from 0 to 1."""
    bits = np.random.PCG64(seed)
    return np.random.Generator(bits.advance(first)).random(count)


def needed_rows(width: int) -> int:
    """Return the number of rows, including held-out ones, that the covariances of vectors of this width need."""
    return -(-OF_WIDTH * width * ONE_IN // (ONE_IN - 1))


def gather(
    encoder: SentenceEncoder | None,
    data: Sequence[Data],
    *,
    keep: int = 0,
    first: int = 0,
    seed: int = 0,
    report: Callable[[int, int | None], None] = lambda done, rows: None,
) -> list[Gathered]:
    """Embed the rows of some sets of columns in batches; hold some rows out, and sum the others.

    Args:
        encoder: Its semantic latent is split; None if all columns hold vectors.
        data: As for `split`.
        keep: Number of rows of all sets together to keep for training.
        first: Number of the first row, if the columns are a part of longer ones.
        seed: Seed of the samples.
        report: Called with the number of rows done so far, and of all rows (None if unknown).

    Returns:
        The sums and samples of each set.

    Raises:
        UsageError: Columns have different lengths or no rows, or the encoder lacks a language.
        DataError: The widths of the vectors differ or are above 4,096; also as `matrix`.
    """
    data = [(langs, of if isinstance(of, Iterator) else parsed(langs, of)) for langs, of in data]
    for langs, _ in data:
        for lang in langs:
            known_lang(lang, encoder.langs if encoder else (), "the encoder", "langs")
    sizes = [None if isinstance(columns, Iterator) else len(columns[0]) for _, columns in data]
    total = None if None in sizes else sum(sizes)  # type: ignore[arg-type]
    whole = [columns for _, columns in data if not isinstance(columns, Iterator)]
    stored = any(isinstance(column, np.ndarray) for columns in whole for column in columns)
    widths = {embed(encoder, [], data[0][0][0]).shape[1]} if encoder and stored else set[int]()
    gathered: list[Gathered] = []
    done = 0
    for langs, columns in data:
        of, place = None, first
        for batch in batches(columns, langs):
            vectors = [embed(encoder, column, lang) for column, lang in zip(batch, langs, strict=True)]
            widths.update(column.shape[1] for column in vectors)
            of = of or Gathered(langs, check_widths(widths), keep // len(data), MOST_HELD_OUT // len(data), seed)
            of.add(place, batch, vectors)
            place, done = place + len(vectors[0]), done + len(vectors[0])
            report(done, total)
        if of is None:
            raise UsageError(f"of {'-'.join(langs)}: no rows", parameter="data")
        gathered.append(of)
    return gathered


def check_data(data: Any) -> None:
    """Raise UsageError unless `data` is a list as `split` takes it; the columns themselves are not checked."""
    for each in data if isinstance(data, list | tuple) else [data]:
        pair = isinstance(each, list | tuple) and len(each) == 2 and not isinstance(each[1], str | bytes)
        if not pair or not isinstance(each[0], list | tuple) or not all(isinstance(lang, str) for lang in each[0]):
            form = "must be a list of sets of columns, each with its languages: [(['en', 'fr'], [english, french])]"
            raise UsageError(form, parameter="data")


def parsed(langs: Sequence[str], columns: Columns) -> list[Column]:
    """Convert columns to lists of sentences, or arrays of vectors."""
    if not isinstance(columns, Iterable) or isinstance(columns, Mapping) or hasattr(columns, "columns"):
        raise UsageError(
            f"of {'-'.join(langs)}: {type(columns).__name__}; expected a list of columns", parameter="data"
        )
    columns = list(map(listed, columns))
    if len(columns) != len(langs):
        raise UsageError(f"of {'-'.join(langs)}: {len(columns)} columns; expected {len(langs)}", parameter="data")
    return [
        numbers(column, name) if holds_vectors(column) else sentence_list(column, name)
        for column, name in zip(columns, (f"{'-'.join(langs)}, {lang}" for lang in langs), strict=True)
    ]


def batches(columns: Columns | Iterator[Columns], langs: Sequence[str]) -> Iterator[Columns]:
    """Yield the columns in batches of at most `AT_ONCE` rows."""
    for part in (parsed(langs, each) for each in columns) if isinstance(columns, Iterator) else [columns]:
        lengths = {len(column) for column in part}
        if len(lengths) != 1:
            raise UsageError(f"has columns of {sorted(lengths)} rows: expected as many in each", parameter="data")
        for start in range(0, max(lengths), AT_ONCE):
            yield [column[start : start + AT_ONCE] for column in part]


def embed(encoder: SentenceEncoder | None, column: Column, lang: str) -> np.ndarray:
    """Embed a column of sentences as vectors (N, D); return a column of vectors as it is."""
    if isinstance(column, np.ndarray):
        return column
    if encoder is None:
        raise UsageError("is needed to embed sentences", parameter="encoder")
    lang = known_lang(lang, encoder.langs, "the encoder", "langs")  # as the encoder spells it
    return numbers(encoder.embed(column, lang=lang, latent=SEMANTIC), f"vectors in {lang}", (len(column), "D"))


def check_widths(widths: set[int]) -> int:
    """Return the number of units of all vectors; DataError if it differs or is too large."""
    smallest, *others = sorted(widths)
    if others:
        raise DataError(f"Vectors of {smallest} and of {others[0]} units: expected those of one encoder.")
    if smallest > MOST_UNITS:
        raise DataError(
            f"Vectors of {smallest:,} units: at most {MOST_UNITS:,} can be split; reduce them first, for example by a "
            "truncated SVD (docs/guide/split.md)."
        )
    return smallest
