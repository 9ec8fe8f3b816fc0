"""Open a token store: a corpus of rows, or a mixture of corpora with different columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bgt_core.data.columns import LABEL
from bgt_core.errors import DataError, NotFound, check_choice
from bgt_core.files import read_json, sha256_file

Json = dict[str, Any]

FORMAT = 3  # version of a store's files; only stores of this version can be opened
STORE, MIXTURE = "store.json", "mixture.json"
SPLITS = ("train", "valid")
IDS = 2**20  # token ids that are counted together


def damaged(file: Path) -> DataError:
    """Make the error for a file of a store that does not fit the store's description."""
    return DataError(f"{file.parent} is damaged, or of another version: {file.name}; prepare it again")


def open_corpus(folder: Path | str, split: str = "train") -> Corpus | Mixture:
    """Open a store made by `prepare`: a `Mixture` if it has several corpora; errors as in `Corpus.open`."""
    folder = Path(folder)
    if not (folder / MIXTURE).exists():
        return Corpus.open(folder, split)
    try:
        names = [str(name) for name in read_json(folder / MIXTURE)["corpora"]]
    except (ValueError, KeyError, TypeError):
        raise damaged(folder / MIXTURE) from None
    return Mixture([Corpus.open(folder / name, split) for name in names])


def verify_corpus(corpus: Corpus | Mixture) -> None:
    """Raise DataError if a file of the store has changed since `prepare`."""
    for part in corpus.corpora:
        there = {path.name: path for path in part.folder.iterdir() if path.is_file()}
        if not isinstance(files := part.store.get("files"), dict):
            raise damaged(part.folder / STORE)
        for name, expected in files.items():
            if name not in there or sha256_file(there[name]) != expected:
                raise DataError(f"{part.folder / name}: changed since it was prepared; prepare it again")


class Stratum(NamedTuple):
    """The rows of one kind of text in one corpus; they follow each other."""

    columns: tuple[str, ...]
    kind: str
    first: int  # number of the first row in the corpus or mixture
    rows: int
    tokens: int  # number of tokens of the longest side, EOS included, summed over the rows


class Corpus:
    """One split of a token store: N rows of token ids, mapped read-only from disk.

    `store` is the content of `store.json`: the settings, the hashes of the sources and files, and the counts of rows.
    """

    def __init__(self, folder: Path, split: str, store: Json):
        """Use `Corpus.open`, which checks the files."""
        self.folder, self.split, self.store = folder, split, store
        columns = store["settings"]["columns"]
        self.columns: dict[str, str] = {name: lang for name, lang in columns.items() if lang != LABEL}  # without labels
        self.tokens: int = store["splits"][split]["tokens"]  # as in `Stratum`
        self.strata: list[Stratum] = []  # only kinds with rows in this split
        first = 0
        for kind, (rows, tokens) in store["splits"][split]["kinds"].items():
            if rows:
                self.strata.append(Stratum(tuple(self.columns), kind, first, rows, tokens))
            first += rows
        pairs = store["pairs"]["kept"]
        self._index = _mapped(folder / f"{split}.index", np.int64, store["splits"][split]["pairs"])
        self._ids = {
            name: _mapped(folder / f"{name}.ids", store["dtype"], store["tokens"][name]) for name in self.columns
        }
        self._offsets = {name: _mapped(folder / f"{name}.offsets", np.int64, pairs + 1) for name in self.columns}
        self._labels = _mapped(folder / "labels", np.float32, pairs) if LABEL in columns.values() else None
        width = store["target_width"]
        self._targets = _mapped(folder / "targets", np.float32, pairs * width).reshape(-1, width) if width else None

    @classmethod
    def open(cls, folder: Path | str, split: str = "train") -> Corpus:
        """Open a store; raises NotFound if `folder` is not one, DataError if it is damaged or of another format."""
        folder = Path(folder)
        check_choice(SPLITS, split=split)
        try:
            store = read_json(folder / STORE)
            if store["settings"]["format"] == FORMAT:
                return cls(folder, split, store)
        except (NotFound, NotADirectoryError) as error:
            raise NotFound(f"{folder} is not a token store") from error
        except DataError:
            raise
        except (ValueError, KeyError, TypeError):
            pass
        raise damaged(folder / STORE)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def corpora(self) -> list[Corpus]:
        """A list with only this corpus, so that a corpus can be used in place of a `Mixture`."""
        return [self]

    def parts(self, indices: np.ndarray) -> list[tuple[Corpus, np.ndarray]]:
        """Return this corpus with the given rows, so that a corpus can be used in place of a `Mixture`."""
        return [(self, indices)]

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Return the number of tokens, EOS included, of each side of B rows: (B, columns)."""
        rows = self._index[indices]
        return np.stack([offsets[rows + 1] - offsets[rows] for offsets in self._offsets.values()], axis=1)

    def take(self, column: str, indices: np.ndarray) -> list[np.ndarray]:
        """Return the token ids of one side of B rows: B arrays (T,), ending in EOS, read-only views of the file."""
        ids, rows = self._ids[column], self._index[indices]
        starts, stops = self._offsets[column][rows], self._offsets[column][rows + 1]
        return [ids[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def used_tokens(self, lang: str, vocab_size: int) -> np.ndarray:
        """Find the tokens that occur in the text of a language, held-out rows included: (V,) bool."""
        occurs = np.zeros(vocab_size, bool)
        for column, of_column in self.columns.items():
            if of_column == lang:
                for start in range(0, len(self._ids[column]), IDS):  # in blocks: bincount copies ids to 64 bits
                    occurs |= np.bincount(self._ids[column][start : start + IDS], minlength=vocab_size) > 0
        return occurs

    def labels(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the labels of B rows, (B,) float32; None if the corpus has none."""
        return None if self._labels is None else self._labels[self._index[indices]]

    def targets(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the target vectors of B rows, (B, D) float32; None if the corpus has none."""
        return None if self._targets is None else self._targets[self._index[indices]]


class Mixture:
    """Several corpora with different columns, whose rows are numbered one corpus after the other."""

    def __init__(self, corpora: Sequence[Corpus]):
        self.corpora = list(corpora)
        self.columns = {name: lang for corpus in corpora for name, lang in corpus.columns.items()}
        self.split, self.folder = corpora[0].split, corpora[0].folder.parent
        self.tokens = sum(corpus.tokens for corpus in corpora)
        self._starts = np.cumsum([0, *map(len, corpora)])
        self.strata = [
            stratum._replace(first=start + stratum.first)
            for corpus, start in zip(corpora, self._starts[:-1].tolist(), strict=True)
            for stratum in corpus.strata
        ]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def used_tokens(self, lang: str, vocab_size: int) -> np.ndarray:
        """See `Corpus.used_tokens`."""
        return np.logical_or.reduce([corpus.used_tokens(lang, vocab_size) for corpus in self.corpora])

    def parts(self, indices: np.ndarray) -> list[tuple[Corpus, np.ndarray]]:
        """Group rows by corpus: return pairs of a corpus and the numbers that its rows have in that corpus."""
        which = np.searchsorted(self._starts, indices, side="right") - 1
        parts = [(corpus, indices[which == i] - self._starts[i]) for i, corpus in enumerate(self.corpora)]
        return [(corpus, rows) for corpus, rows in parts if len(rows)]


def _mapped(file: Path, dtype: str | type, count: int) -> np.ndarray:
    """Map a file of `count` values read-only."""
    if not file.is_file() or file.stat().st_size != count * np.dtype(dtype).itemsize:
        raise damaged(file)
    if not count:  # an empty file can't be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(file, dtype, "r"))  # a plain array, because slicing a memmap is slower
