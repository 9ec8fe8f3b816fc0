"""Compute means and covariances of sentence vectors, and draw samples of the vectors, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.arrays import holds_vectors, listed, matrix, numbers

HeldOut = tuple[Sequence[str], Sequence[np.ndarray]]  # languages of some columns, and the vectors (N, D) of each


class Moments:
    """The number, the mean and the scatter matrix of rows, in float64. A row has the vectors of a sentence and its
    translations, concatenated.

    `add` and `merge` use the update of Chan, Golub and LeVeque (1983), which loses no precision if the mean is large.
    """

    def __init__(self, langs: Sequence[str], width: int):
        self.langs, self.width, self.count = tuple(langs), width, 0
        self.mean = np.zeros(len(langs) * width)
        self.scatter = np.zeros((len(self.mean), len(self.mean)))  # sum of the outer products of centred rows

    def add(self, rows: np.ndarray) -> None:
        """Add N rows of concatenated vectors, (N, columns x D)."""
        if len(rows):
            rows = rows.astype(np.float64)
            mean = rows.mean(0)
            rows -= mean
            self.merge(len(rows), mean, rows.T @ rows)

    def merge(self, count: int, mean: np.ndarray, scatter: np.ndarray) -> None:
        """Update the moments, given the number, the mean and the scatter matrix of other rows."""
        total, apart = self.count + count, mean - self.mean
        if count:
            self.mean = self.mean + apart * (count / total)
            self.scatter += scatter + np.outer(apart, apart) * (self.count * count / total)
            self.count = total

    def block(self, column: int) -> slice:
        """Return the slice of a row that contains the vector of a column."""
        return slice(column * self.width, (column + 1) * self.width)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics that a splitting method takes as input; all covariances are (D, D) float64."""

    means: dict[str, np.ndarray]  # language -> (D,)
    covariances: dict[str, np.ndarray]  # language -> covariance
    crosses: dict[tuple[str, str], np.ndarray]  # languages (l, m) -> cross-covariance of translations

    @property
    def langs(self) -> tuple[str, ...]:
        return tuple(self.means)

    @property
    def width(self) -> int:
        return len(next(iter(self.means.values())))

    def constant(self, lang: str) -> np.ndarray:
        """Return which units are constant in a language, (D,) bool: their rounding errors could reveal the language."""
        return np.sqrt(self.covariances[lang].diagonal()) <= 1e-7 * np.abs(self.means[lang])


def statistics(moments: Iterable[Moments]) -> Statistics:
    """Combine the moments of several sets of columns; two columns of a set may have the same language."""
    columns = [(part, column, lang) for part in moments for column, lang in enumerate(part.langs)]
    rows: Counter[str] = Counter()
    means: dict[str, np.ndarray] = {}
    for part, column, lang in columns:
        rows[lang] += part.count
        means[lang] = means.get(lang, 0) + part.mean[part.block(column)] * part.count
    means = {lang: total / rows[lang] for lang, total in means.items()}
    counts: Counter[tuple[str, str, bool]] = Counter()  # (language, language, whether both are the same column)
    sums: dict[tuple[str, str, bool], np.ndarray] = {}
    for part, i, left in columns:
        for j, right in enumerate(part.langs):
            key, blocks = (left, right, i == j), (part.block(i), part.block(j))
            apart = part.mean[blocks[0]] - means[left], part.mean[blocks[1]] - means[right]
            counts[key] += part.count
            sums[key] = sums.get(key, 0) + (part.scatter[blocks] + part.count * np.outer(*apart))
    covariances = {key[0]: total / counts[key] for key, total in sums.items() if key[2]}
    crosses = {key[:2]: total / counts[key] for key, total in sums.items() if not key[2]}
    return Statistics(means, covariances, crosses)


Column = Sequence[str] | np.ndarray  # N sentences, or vectors (N, D) of any kind that `vectors.arrays` accepts
Columns = Sequence[Column]
Data = tuple[Sequence[str], Columns | Iterator[Columns]]  # languages of the columns; columns as a whole or in batches

AT_ONCE = 4_096  # number of rows that are embedded together
ONE_IN, MOST_HELD_OUT = 10, 4_000  # one of ten rows is held out; maximum number of held-out rows
OF_WIDTH = 2  # minimum number of sentences per unit of a vector, so that covariances can be estimated
MOST_UNITS = 4_096  # for wider vectors, eigenvectors take minutes, and the scatter matrix half a gigabyte


class RandomRows:
    """Keeps the `most` rows with the smallest keys: with random keys, a random sample, whatever the batch size."""

    def __init__(self, most: int):
        self.most, self.count = most, 0
        self.arrays: list[np.ndarray] = []  # the first array has the keys; `count` of the `most` rows are in use

    def add(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Offer rows, given as arrays; the first has their keys. Return the rows that are rejected or replaced."""
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
        """Return the arrays of the sample, with rows sorted by the row numbers in the second array."""
        order = np.argsort(self.arrays[1][: self.count])
        return [array[order] for array in self.arrays]


class Gathered:
    """Moments and samples of the vectors in a set of columns. A row has the vectors of a sentence and its translations.

    A row is either held out, or added to the moments and offered to the training sample of at most `keep` rows. The
    choice depends only on the seed and on the row's number. So several processes can gather different rows of the same
    columns, and their merged results equal the result for all rows.
    """

    def __init__(self, langs: Sequence[str], width: int, keep: int, most_held_out: int, seed: int):
        self.seed, self.total = seed, 0
        self.moments, self.held_out, self.kept = Moments(langs, width), RandomRows(most_held_out), RandomRows(keep)
        # language -> hashes of its different sentences; once there are `needed_rows`, no more are added
        self.different: dict[str, set[int]] = {lang: set() for lang in langs}

    def add(self, first: int, columns: Columns, vectors: Sequence[np.ndarray]) -> None:
        """Add N rows: the sentences of each column, and their vectors (N, D). The first row has the number `first`."""
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
        held_out = (places * ONE_IN).astype(int) == numbers % ONE_IN  # one row in every ten
        self._sum(keys[~held_out], numbers[~held_out], rows[~held_out])
        self._sum(*self.held_out.add(keys[held_out], numbers[held_out], rows[held_out]))

    def merge(self, other: Gathered) -> Gathered:
        """Add the result that another process computed from other rows of the same columns."""
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
        """The row numbers of the held-out rows."""
        return self.held_out.rows()[1]

    def sample(self, of: RandomRows) -> HeldOut:
        """Return the languages and the vectors (N, D) of the columns of a sample; `of` is `held_out` or `kept`."""
        return self.langs, np.split(of.rows()[2], len(self.langs), axis=1)


def draw(seed: Sequence[int], first: int, count: int) -> np.ndarray:
    """Return the numbers from `first` to `first + count - 1` of a seeded sequence of random numbers from 0 to 1."""
    bits = np.random.PCG64(seed)
    return np.random.Generator(bits.advance(first)).random(count)


def needed_rows(width: int) -> int:
    """Return the number of rows, including held-out rows, needed to estimate covariances of vectors (N, width)."""
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
    """Embed translations in batches; hold some rows out, and compute means and covariances of the others.

    `keep` is the total number of rows to keep for training; `first` is the number of the first row, if the columns are
    a part of longer columns. The other arguments are the same as in `split`.

    Raises:
        UsageError: The columns have different lengths or no rows, or the encoder lacks a language.
        DataError: The vectors differ in width, have more than 4,096 units, or are rejected by `matrix`.
    """
    data = [(langs, of if isinstance(of, Iterator) else parsed(langs, of)) for langs, of in data]
    for langs, _ in data:
        for lang in langs:
            known_lang(lang, encoder.langs if encoder else (), "the encoder", "langs")
    whole = [columns for _, columns in data if not isinstance(columns, Iterator)]
    total = sum(len(columns[0]) for columns in whole) if len(whole) == len(data) else None
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
            raise UsageError(f"for {'-'.join(langs)} has no rows", parameter="data")
        gathered.append(of)
    return gathered


def check_data(data: Any) -> None:
    """Raise UsageError unless `data` is a list of (languages, columns), as in `split`; the columns are not checked."""
    for each in data if isinstance(data, list | tuple) else [data]:
        pair = isinstance(each, list | tuple) and len(each) == 2 and not isinstance(each[1], str | bytes)
        if not pair or not isinstance(each[0], list | tuple) or not all(isinstance(lang, str) for lang in each[0]):
            form = "must be a list of sets of columns, each with its languages: [(['en', 'fr'], [english, french])]"
            raise UsageError(form, parameter="data")


def parsed(langs: Sequence[str], columns: Columns) -> list[Column]:
    """Convert each column to a list of sentences or an array of vectors."""
    if not isinstance(columns, Iterable) or isinstance(columns, Mapping) or hasattr(columns, "columns"):
        raise UsageError(
            f"for {'-'.join(langs)} is {type(columns).__name__}; expected a list of columns", parameter="data"
        )
    columns = list(map(listed, columns))
    if len(columns) != len(langs):
        raise UsageError(f"for {'-'.join(langs)} has {len(columns)} columns; expected {len(langs)}", parameter="data")
    return [
        numbers(column, name) if holds_vectors(column) else sentence_list(column, name)
        for column, name in zip(columns, (f"{'-'.join(langs)}, {lang}" for lang in langs), strict=True)
    ]


def batches(columns: Columns | Iterator[Columns], langs: Sequence[str]) -> Iterator[Columns]:
    """Yield the columns in batches of at most `AT_ONCE` rows."""
    for part in (parsed(langs, each) for each in columns) if isinstance(columns, Iterator) else [columns]:
        lengths = {len(column) for column in part}
        if len(lengths) != 1:
            raise UsageError(f"has columns of {sorted(lengths)} rows; expected equal numbers of rows", parameter="data")
        for start in range(0, max(lengths), AT_ONCE):
            yield [column[start : start + AT_ONCE] for column in part]


def embed(encoder: SentenceEncoder | None, column: Column, lang: str) -> np.ndarray:
    """Embed a column of sentences as vectors (N, D); return a column of vectors as it is."""
    if isinstance(column, np.ndarray):
        return column
    if encoder is None:
        raise UsageError("is needed to embed sentences", parameter="encoder")
    lang = known_lang(lang, encoder.langs, "the encoder", "langs")  # the language code in the encoder's own spelling
    return numbers(encoder.embed(column, lang=lang, latent=SEMANTIC), f"vectors in {lang}", (len(column), "D"))


def check_widths(widths: set[int]) -> int:
    """Return the common width of all vectors; raise DataError if the widths differ or are too large."""
    smallest, *others = sorted(widths)
    if others:
        raise DataError(f"Vectors of {smallest} and of {others[0]} units: use vectors of a single encoder.")
    if smallest > MOST_UNITS:
        raise DataError(
            f"Vectors of {smallest:,} units: at most {MOST_UNITS:,} can be split; reduce them first, for example by a "
            "truncated SVD (docs/guide/split.md)."
        )
    return smallest
