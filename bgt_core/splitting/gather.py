"""Vectors of rows of one meaning, in memory that does not grow with them: their sums, and random samples of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from zlib import crc32

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.languages import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.splitting.moments import HeldOut, Moments
from bgt_core.vectors.convert import holds_vectors, listed, matrix, numbers

Column = Sequence[str] | np.ndarray  # N sentences, or vectors (N, D) of any kind that `vectors.convert` takes
Columns = Sequence[Column]
Data = tuple[Sequence[str], Columns | Iterator[Columns]]  # languages of the columns, and these whole or in batches

AT_ONCE = 4_096  # rows embedded together
ONE_IN, MOST_HELD_OUT = 10, 4_000  # rows of which one is held out, and how many are at most
OF_WIDTH = 2  # sentences per unit that covariances need
MOST_UNITS = 4_096  # eigenvectors of wider vectors take minutes, and sums of two columns half a gigabyte


class RandomRows:
    """The `most` rows of the smallest keys. Random keys make it a random sample, in whatever parts the rows come."""

    def __init__(self, most: int):
        self.most, self.count = most, 0
        self.arrays: list[np.ndarray] = []  # keys and other arrays, of `most` rows, `count` of them in use

    def add(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Take rows and return those that are not in the sample, or no longer; the first array, (N,), has their keys.

        The arrays given are overwritten.
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
        """The arrays of the sample, in the order of the second one."""
        order = np.argsort(self.arrays[1][: self.count])
        return [array[order] for array in self.arrays]


class Gathered:
    """Sums and samples of the rows of some columns.

    A row is held out, or summed and offered to the sample that a method trains on; its number and the seed decide, so
    parts of a file that are gathered in several processes and merged give what the whole file gives.

    Args:
        langs: The language of each column; paraphrases of one language repeat it.
        width: Units D of a vector.
        keep: Size of the sample to train on.
        most_held_out: Size of the sample that is held out.
        seed: Seed of both.
    """

    def __init__(self, langs: Sequence[str], width: int, keep: int, most_held_out: int, seed: int):
        self.seed, self.total = seed, 0
        self.moments, self.held_out, self.kept = Moments(langs, width), RandomRows(most_held_out), RandomRows(keep)
        self.different: dict[str, set[int]] = {lang: set() for lang in langs}  # hashes, no more than are needed

    def add(self, first: int, columns: Columns, vectors: Sequence[np.ndarray]) -> None:
        """Add N rows, errors as `gather`.

        Args:
            first: The number of the first row.
            columns: What the vectors were made from.
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
        """Add what another process gathered of other rows of the same columns."""
        self.total += other.total
        for lang, different in self.different.items():
            different |= other.different[lang]
        self.moments.merge(other.moments)
        self.kept.add(*other.kept.rows())
        self._sum(*self.held_out.add(*other.held_out.rows()))
        return self

    def _sum(self, keys: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> None:
        self.moments.add(self.split(rows))
        self.kept.add(keys, numbers, rows)

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """(N, columns x D) -> (N, D) for each column."""
        return np.split(rows, len(self.langs), axis=1)

    @property
    def langs(self) -> Sequence[str]:
        return self.moments.langs

    @property
    def held_out_rows(self) -> np.ndarray:
        """The numbers of the rows held out."""
        return self.held_out.rows()[1]

    def sample(self, of: RandomRows) -> HeldOut:
        """The vectors of `held_out` or `kept`."""
        return self.langs, self.split(of.rows()[2])


def draw(seed: Sequence[int], first: int, count: int) -> np.ndarray:
    """Numbers `first` to `first + count - 1` of a sequence of random numbers from 0 to 1."""
    bits = np.random.PCG64(seed)
    return np.random.Generator(bits.advance(first)).random(count)


def needed_rows(width: int) -> int:
    """The number of rows, with those held out, that covariances of vectors of this width need."""
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
    """Embed the rows of some sets of columns, a batch at a time; hold some out, and sum the others.

    Args:
        encoder: Its semantic latent is split; None if all columns hold vectors.
        data: As for `split`.
        keep: Number of rows to keep for a method that trains, of all sets together.
        first: Number of the first row, where the columns are a part of longer ones.
        seed: Seed of the samples.
        report: Called with the rows done so far, and all, None if unknown.

    Returns:
        One for each set.

    Raises:
        UsageError: Columns of different lengths or without rows; a language that the encoder does not have.
        DataError: Vectors of different widths or of too many units, and as `matrix`.
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


def check_data(data: object) -> None:
    """Raise UsageError unless this is a list of sets of columns, as `split` takes them, however the columns are."""
    sets = isinstance(data, list | tuple) and all(
        isinstance(each, list | tuple)
        and len(each) == 2
        and isinstance(each[0], list | tuple)
        and all(isinstance(lang, str) for lang in each[0])
        and not isinstance(each[1], str | bytes)
        for each in data
    )
    if not sets:
        raise UsageError(
            "must be a list of sets of columns, each with its languages: [(['en', 'fr'], [english, french])]",
            parameter="data",
        )


def parsed(langs: Sequence[str], columns: Columns) -> list[Column]:
    """The columns as lists of sentences, or arrays of vectors."""
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
    """Batches of at most `AT_ONCE` rows."""
    for part in (parsed(langs, each) for each in columns) if isinstance(columns, Iterator) else [columns]:
        lengths = {len(column) for column in part}
        if len(lengths) != 1:
            raise UsageError(f"has columns of {sorted(lengths)} rows: expected as many in each", parameter="data")
        for start in range(0, max(lengths), AT_ONCE):
            yield [column[start : start + AT_ONCE] for column in part]


def embed(encoder: SentenceEncoder | None, column: Column, lang: str) -> np.ndarray:
    """Sentences -> vectors (N, D); vectors stay as they are."""
    if isinstance(column, np.ndarray):
        return column
    if encoder is None:
        raise UsageError("is needed to embed sentences", parameter="encoder")
    lang = known_lang(lang, encoder.langs, "the encoder", "langs")  # as the encoder spells it
    return numbers(encoder.embed(column, lang=lang, latent=SEMANTIC), f"vectors in {lang}", (len(column), "D"))


def check_widths(widths: set[int]) -> int:
    """Return the units of all vectors; DataError if they differ or are too many."""
    smallest, *others = sorted(widths)
    if others:
        raise DataError(f"Vectors of {smallest} and of {others[0]} units: expected those of one encoder.")
    if smallest > MOST_UNITS:
        raise DataError(
            f"Vectors of {smallest:,} units: at most {MOST_UNITS:,} can be split; reduce them first, for example by a "
            "truncated SVD (docs/guide/split.md)."
        )
    return smallest
