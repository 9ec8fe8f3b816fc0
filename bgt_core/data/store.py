"""Write and open token stores: folders with the token ids of a corpus, or of several corpora with different columns.

`tokenise` reads, tokenises and writes translations chunk by chunk. `open_corpus` opens the files of a store as a
`Corpus` or a `Mixture`, which memory-maps the files. So no corpus is loaded into memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bgt_core.data.clean import hashes
from bgt_core.data.columns import LABEL, Source, parse_columns, read_columns
from bgt_core.data.parallel import Skipped, checked_chunks, source_files
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, NotFound, UsageError, check_choice
from bgt_core.files import atomic_folder, read_json, sha256_file
from bgt_core.vectors.arrays import read_npy

Json = dict[str, Any]

FORMAT = 3  # version of the file format; only stores in this version can be opened
STORE, MIXTURE = "store.json", "mixture.json"
SPLITS = ("train", "valid")
BLOCK = 2**16  # number of rows or token ids that are read together


def tokenise(
    sources: Sequence[Source | Path | str],
    columns: Sequence[str],
    tokenizer: Tokenizer,
    out: Path | str,
    *,
    min_tokens: int = 5,
    max_tokens: int = 100,
    valid_pairs: int,
    seed: int,
    strict: bool = False,
) -> Corpus | Mixture:
    """Read, tokenise and filter files of translations, write them to a token store, and open its training split.

    Args:
        sources: Files of rows; a file given only by its path has all `columns`. If sources have different columns, the
            store is a mixture, with one corpus for each set of columns.
        columns: The columns, such as en or a:en: a language, or a name and a language.
        tokenizer: The tokenizer for all languages.
        out: The folder of the store. It appears complete or not at all. A store that was made from the same files,
            tokenizer and settings is opened instead of written again.
        min_tokens: Minimum number of tokens of every sentence of a row, without EOS (BGT paper: 5).
        max_tokens: Maximum number of tokens of every sentence of a row, without EOS (BGT paper: 100).
        valid_pairs: Number of rows to hold out. A hash of the first column's text, ignoring case, selects the rows.
            Rows of any corpus with the same sentence in the first column are in the same split, so a few more rows than
            `valid_pairs` may be held out.
        seed: The seed of this hash.
        strict: Whether a bad row raises an error; otherwise bad rows are left out and counted.

    Raises:
        UsageError: The settings are impossible, leave no row to train on, or differ from those of the store at `out`.
        NotFound, DataError: A source is missing or invalid, as in `read_pairs`; or `out` is damaged or not a store.
    """
    out = Path(out)
    langs = parse_columns(columns)
    limits = {"min_tokens": min_tokens, "max_tokens": max_tokens, "valid_pairs": valid_pairs, "seed": seed}
    if not 1 <= min_tokens <= max_tokens or min(valid_pairs, seed) < 0:
        raise UsageError(f"{limits}; expected 1 <= min_tokens <= max_tokens, and no negative number")
    if not sources:
        raise UsageError("sources: expected at least one file")
    parts = _group(sources, langs)
    settings = [  # everything that determines the content of a token store
        {
            "format": FORMAT,
            "sources": [[sha256_file(file) for file in _files(source)] for source in of_part],
            "kinds": [source.kind for source in of_part],
            "columns": {name: langs[name] for name in read_columns(names)},
            **({} if read_columns(names) == names else {"file_columns": list(names)}),
            "tokenizer": tokenizer.sha256,
            **limits,
        }
        for names, of_part in parts.items()
    ]
    for of_part in parts.values():
        target_width(of_part)  # raises an error for invalid vectors, before the slow tokenising
    if out.exists():
        return _reuse(out, settings, strict)
    with atomic_folder(out) as work:
        _write(work, parts, settings, tokenizer, strict)
    return open_corpus(out)


def _group(sources: Sequence[Source | Path | str], langs: Mapping[str, str]) -> dict[tuple[str, ...], list[Source]]:
    """Group data files by their columns; within a group, files with the same kind of text are adjacent."""
    parts: dict[tuple[str, ...], list[Source]] = {}
    for source in sources:
        if not isinstance(source, Source):
            source = Source(Path(source), tuple(langs))
        parse_columns([f"{name}:{langs[name]}" for name in read_columns(source.columns)])
        parts.setdefault(source.columns, []).append(source)
    for of_part in parts.values():
        kinds = [source.kind for source in of_part]
        of_part.sort(key=lambda source: kinds.index(source.kind))
    return parts


def _files(source: Source) -> list[Path]:
    """List the files of a data source: its text files, and the file with a teacher model's vectors, if any."""
    files = source_files(source.path, source.columns)
    if source.targets and not source.targets.is_file():
        raise NotFound(f"{source.targets}: can't be read (no such file); expected vectors of the rows of {source.path}")
    return [*files, source.targets] if source.targets else files


def _write(
    work: Path,
    parts: Mapping[tuple[str, ...], Sequence[Source]],
    settings: Sequence[Json],
    tokenizer: Tokenizer,
    strict: bool,
) -> None:
    """Write a token store to the new folder `work`: the files of a corpus, or a folder for each corpus of a mixture."""
    mixed = len(parts) > 1
    folders = [work / "-".join(names) if mixed else work for names in parts]
    stores: list[Json] = []
    for folder, of_part, setting in zip(folders, parts.values(), settings, strict=True):
        folder.mkdir(exist_ok=True)
        skipped = Skipped()
        encoded = _encode(of_part, setting, tokenizer, folder, skipped, strict)
        stores.append({"settings": setting, **encoded, "skipped": skipped.counts, "skipped_examples": skipped.examples})
    limit = _held_out_limit(folders, settings[0]["valid_pairs"])
    for folder, store in zip(folders, stores, strict=True):
        _split(folder, store, limit)
        store["files"] = {file.name: sha256_file(file) for file in sorted(folder.iterdir())}
    if not sum(store["splits"]["train"]["pairs"] for store in stores):
        size = sum(store["pairs"]["kept"] for store in stores)
        held_out = f"valid_pairs={settings[0]['valid_pairs']} leaves no pair to train on; the sources have {size}"
        raise UsageError(f"{held_out}; hold out fewer pairs")
    for folder, store in zip(folders, stores, strict=True):
        (folder / STORE).write_text(json.dumps(store, indent=1, ensure_ascii=False), encoding="utf-8")
    if mixed:
        names = [folder.name for folder in folders]
        (work / MIXTURE).write_text(json.dumps({"format": FORMAT, "corpora": names}, indent=1), encoding="utf-8")


def _reuse(out: Path, settings: Sequence[Json], strict: bool) -> Corpus | Mixture:
    opened = open_corpus(out)
    if len(opened.corpora) != len(settings):
        raise UsageError(f"{out} was made with other columns; delete it or choose another folder")
    for corpus, expected in zip(opened.corpora, settings, strict=True):
        if changed := [name for name, value in expected.items() if value != corpus.store["settings"].get(name)]:
            raise UsageError(f"{out} was made with other {', '.join(changed)}; delete it or choose another folder")
        if strict and corpus.store["skipped"]:
            raise DataError(corpus.store["skipped_examples"][0])
    return opened


def _encode(
    sources: Sequence[Source], settings: Json, tokenizer: Tokenizer, work: Path, skipped: Skipped, strict: bool
) -> Json:
    """Write token ids, offsets, labels, teacher vectors and hashes of all valid rows; return counts for store.json."""
    texts = [column for column, lang in settings["columns"].items() if lang != LABEL]
    label = next((number for number, lang in enumerate(settings["columns"].values()) if lang == LABEL), -1)
    dtype = np.dtype("uint16" if tokenizer.vocab_size <= 2**16 else "uint32")
    counts = Counter({"kept": 0, "too short": 0, "too long": 0})
    kinds = dict.fromkeys((source.kind for source in sources), 0)
    tokens, longest = dict.fromkeys(texts, 0), dict.fromkeys(texts, 0)  # in tokens, with EOS
    width = target_width(sources)
    names = [f"{column}.{kind}" for column in texts for kind in ("ids", "offsets")] + ["hashes"]
    names += ["labels"] * (label >= 0) + ["targets"] * bool(width)
    with ExitStack() as stack:
        files = {name: stack.enter_context((work / name).open("wb")) for name in names}
        for column in texts:
            files[f"{column}.offsets"].write(np.zeros(1, np.int64).tobytes())
        for source in sources:
            targets = read_targets(source.targets) if source.targets else None
            read = 0  # number of rows read from the file, including invalid rows
            for chunk in checked_chunks(source.path, source.columns, skipped, strict, label):
                columns = list(zip(*chunk.texts, strict=True)) or [()] * len(texts)
                sides = [tokenizer.encode(sentences, normalised=True) for sentences in columns]
                lengths = np.array([list(map(len, side)) for side in sides], np.int64)  # (columns, rows), with EOS
                short = (lengths - 1 < settings["min_tokens"]).any(axis=0)
                long = ~short & (lengths - 1 > settings["max_tokens"]).any(axis=0)
                kept = np.flatnonzero(~short & ~long)
                kinds[source.kind] += len(kept)
                counts.update({"kept": len(kept), "too short": int(short.sum()), "too long": int(long.sum())})
                for column, side, sizes in zip(texts, sides, lengths[:, kept], strict=True):
                    ids = np.fromiter(chain.from_iterable(side[row] for row in kept.tolist()), dtype)
                    files[f"{column}.ids"].write(ids.tobytes())
                    files[f"{column}.offsets"].write((tokens[column] + sizes.cumsum()).tobytes())
                    tokens[column] += int(sizes.sum())
                    longest[column] = int(sizes.max(initial=longest[column]))
                folded = [columns[0][row].casefold() for row in kept.tolist()]
                files["hashes"].write(hashes(folded, settings["seed"]).tobytes())
                if label >= 0:
                    files["labels"].write(chunk.values[kept].astype(np.float32).tobytes())
                if targets is not None:
                    rows = read + chunk.places[kept]
                    if len(rows) and rows[-1] >= len(targets):
                        raise DataError(f"{source.targets} has {len(targets)} rows, but {source.path} has more")
                    vectors = np.asarray(targets[rows], np.float32)
                    if not np.isfinite(vectors).all():
                        raise DataError(f"{source.targets}: a vector contains NaN or infinity")
                    files["targets"].write(vectors.tobytes())
                read += chunk.size
            if targets is not None and read != len(targets):
                raise DataError(f"{source.targets} has {len(targets)} rows, but {source.path} has {read}")
    if not counts["kept"]:
        rule = f"each sentence needs {settings['min_tokens']} to {settings['max_tokens']} tokens"
        dropped = f"{counts['too short']} pairs are too short, {counts['too long']} too long"
        raise DataError(f"no pair is left of {counts.total()}, because {rule}; {dropped}")
    numbers = {"pairs": dict(counts), "kinds": kinds, "tokens": tokens, "longest": longest, "target_width": width}
    return {"dtype": dtype.name, **numbers}


def _held_out_limit(folders: Sequence[Path], valid_pairs: int) -> int:
    """Return the largest hash of a held-out row, so that about `valid_pairs` rows of all corpora are held out."""
    smallest = np.zeros(0, np.uint64)
    for folder in folders:
        for start in range(0, (folder / "hashes").stat().st_size // 8, BLOCK):
            block = _read(folder / "hashes", np.uint64, start, BLOCK)
            smallest = np.sort(np.concatenate([smallest, block]))[:valid_pairs]
    return int(smallest[-1]) if valid_pairs else -1


def _split(work: Path, store: Json, limit: int) -> None:
    """Hold out the rows with hashes up to `limit`, and write the row indices of each split."""
    size = store["pairs"]["kept"]
    ends = np.cumsum(list(store["kinds"].values()))
    sums = {split: np.zeros((len(ends), 2), np.int64) for split in SPLITS}  # rows and tokens of each kind of text
    with ExitStack() as stack:
        files = {split: stack.enter_context((work / f"{split}.index").open("wb")) for split in SPLITS}
        for start in range(0, size, BLOCK):
            held_out = _read(work / "hashes", np.uint64, start, BLOCK) <= limit
            offsets = [_read(work / f"{column}.offsets", np.int64, start, BLOCK + 1) for column in store["tokens"]]
            longer = np.max([np.diff(of_column) for of_column in offsets], axis=0)
            for split, chosen in (("train", ~held_out), ("valid", held_out)):
                rows = start + np.flatnonzero(chosen)
                files[split].write(rows.astype(np.int64).tobytes())
                kinds = np.searchsorted(ends, rows, side="right")
                np.add.at(sums[split][:, 0], kinds, 1)
                np.add.at(sums[split][:, 1], kinds, longer[chosen])
    store["splits"] = {
        split: {
            **dict(zip(("pairs", "tokens"), of_kinds.sum(0).tolist(), strict=True)),
            "kinds": dict(zip(store["kinds"], of_kinds.tolist(), strict=True)),
        }
        for split, of_kinds in sums.items()
    }
    (work / "hashes").unlink()


def _read(file: Path, dtype: type, start: int, count: int) -> np.ndarray:
    """Read up to `count` values from index `start`, without memory-mapping, which would fill the memory with pages."""
    return np.fromfile(file, dtype, count, offset=start * np.dtype(dtype).itemsize)


def target_width(sources: Sequence[Source]) -> int:
    """Return the dimension of a teacher model's vectors, 0 without vectors; raise an error if files differ in it."""
    widths = [read_targets(source.targets).shape[1] if source.targets else 0 for source in sources]
    for source, width in zip(sources, widths, strict=True):
        if width and not all(widths):
            columns = "-".join(source.columns)
            raise UsageError(f"targets: some files of {columns} have vectors, others don't; add vectors to all or none")
        if width != widths[0]:
            raise DataError(
                f"{source.targets}: vectors of {width} units, but those of {sources[0].targets} have {widths[0]}; "
                "use vectors of the same encoder in all files"
            )
    return widths[0]


def read_targets(path: Path) -> np.ndarray:
    """Memory-map a file of vectors, floats (rows, D); NotFound if it is absent, DataError for other contents."""
    targets = read_npy(path)
    if targets.ndim != 2 or targets.dtype.kind != "f" or not targets.shape[1]:
        raise DataError(f"{path}: {targets.dtype} {targets.shape}; expected floats (rows, D)")
    return targets


def damaged(file: Path) -> DataError:
    """Return the error for a file of a token store that does not match the description in store.json."""
    return DataError(f"{file.parent} is damaged, or of another version: {file.name}; start a new run")


def open_corpus(folder: Path | str, split: str = "train") -> Corpus | Mixture:
    """Open a token store made by `tokenise`: a `Mixture` if it has several corpora, else a `Corpus`."""
    folder = Path(folder)
    if not (folder / MIXTURE).exists():
        return Corpus.open(folder, split)
    try:
        names = [str(name) for name in read_json(folder / MIXTURE)["corpora"]]
    except (ValueError, KeyError, TypeError):
        raise damaged(folder / MIXTURE) from None
    return Mixture([Corpus.open(folder / name, split) for name in names])


def verify_corpus(corpus: Corpus | Mixture) -> None:
    """Raise DataError if a file of the store has changed since `tokenise` wrote it."""
    for part in corpus.corpora:
        there = {path.name: path for path in part.folder.iterdir() if path.is_file()}
        if not isinstance(files := part.store.get("files"), dict):
            raise damaged(part.folder / STORE)
        for name, expected in files.items():
            if name not in there or sha256_file(there[name]) != expected:
                raise DataError(f"{part.folder / name}: changed since the text was tokenised; start a new run")


class Stratum(NamedTuple):
    """The consecutive rows of a corpus that have one kind of text, such as news."""

    columns: tuple[str, ...]
    kind: str
    first: int  # index of the first row in the corpus or mixture
    rows: int
    tokens: int  # sum over rows of the length of the longest sentence, in tokens with EOS


class Corpus:
    """One split of a token store: N rows of token ids, in read-only memory-mapped files.

    `store` is the content of `store.json`: the settings, the hashes of the sources and files, and the counts of rows.
    """

    def __init__(self, folder: Path, split: str, store: Json):
        """Open a corpus without checks; call `Corpus.open` instead, which checks the files."""
        self.folder, self.split, self.store = folder, split, store
        columns = store["settings"]["columns"]
        self.columns: dict[str, str] = {name: lang for name, lang in columns.items() if lang != LABEL}  # text columns
        self.tokens: int = store["splits"][split]["tokens"]  # counted as in `Stratum.tokens`
        self.strata: list[Stratum] = []  # one stratum for each kind of text in this split
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
        """Open a split of a token store; NotFound if `folder` is not a store, DataError if the store is invalid."""
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
        """A list with this corpus. A `Mixture` has a list of several corpora, so that code can treat both alike."""
        return [self]

    def parts(self, indices: np.ndarray) -> list[tuple[Corpus, np.ndarray]]:
        """Return [(this corpus, row indices)], in the same form as `Mixture.parts`."""
        return [(self, indices)]

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Return the number of tokens, EOS included, of each sentence in B rows: (B, columns)."""
        rows = self._index[indices]
        return np.stack([offsets[rows + 1] - offsets[rows] for offsets in self._offsets.values()], axis=1)

    def take(self, column: str, indices: np.ndarray) -> list[np.ndarray]:
        """Return the token ids of one column of B rows: B arrays (T,), ending in EOS, read-only views of the file."""
        ids, rows = self._ids[column], self._index[indices]
        starts, stops = self._offsets[column][rows], self._offsets[column][rows + 1]
        return [ids[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def used_tokens(self, lang: str, vocab_size: int) -> np.ndarray:
        """Find the tokens that occur in the text of a language, held-out rows included: (V,) bool."""
        occurs = np.zeros(vocab_size, bool)
        for column, of_column in self.columns.items():
            if of_column == lang:
                for start in range(0, len(self._ids[column]), BLOCK):  # in blocks, as bincount makes int64 copies
                    occurs |= np.bincount(self._ids[column][start : start + BLOCK], minlength=vocab_size) > 0
        return occurs

    def labels(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the labels of B rows, (B,) float32; None if the corpus has no labels."""
        return None if self._labels is None else self._labels[self._index[indices]]

    def targets(self, indices: np.ndarray) -> np.ndarray | None:
        """Return a teacher model's vectors for B rows, (B, D) float32; None if the corpus has no such vectors."""
        return None if self._targets is None else self._targets[self._index[indices]]


class Mixture:
    """Several corpora with different columns. The row indices of a corpus continue those of the previous corpus."""

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
        """Find the tokens that occur in the text of a language, held-out rows included: (V,) bool."""
        return np.logical_or.reduce([corpus.used_tokens(lang, vocab_size) for corpus in self.corpora])

    def parts(self, indices: np.ndarray) -> list[tuple[Corpus, np.ndarray]]:
        """Group rows by corpus: return [(corpus, indices of its rows within this corpus)]."""
        which = np.searchsorted(self._starts, indices, side="right") - 1
        parts = [(corpus, indices[which == i] - self._starts[i]) for i, corpus in enumerate(self.corpora)]
        return [(corpus, rows) for corpus, rows in parts if len(rows)]


def _mapped(file: Path, dtype: str | type, count: int) -> np.ndarray:
    """Memory-map a file of `count` values, read-only; raise DataError if the file has another size."""
    if not file.is_file() or file.stat().st_size != count * np.dtype(dtype).itemsize:
        raise damaged(file)
    if not count:  # an empty file can't be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(file, dtype, "r"))  # converted to a plain array, because slicing a memmap is slower
