"""Files of translations to a token store on disk.

    TSV, Moses, Parquet -> `read_pairs` -> `prepare` (tokenise, filter, split) -> `Corpus`

Nothing here holds a corpus in memory: files stream in, piece ids stream out, and a `Corpus` maps them read-only.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b, file_digest
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import zstandard

from bgt_core.errors import BadInput
from bgt_core.text import Tokenizer, normalise

Json = dict[str, Any]

FORMAT = 1  # of the store; goes up when its files change, so that an old store is never misread
SPLITS = ("train", "valid")
SUFFIXES = ("", ".gz", ".xz", ".zst")
LONGEST_LINE = 16 * 2**20  # bytes; a longer one is no text, and would fill the memory
EXAMPLES = 20  # of bad lines that are kept
CHUNK = 4096  # pairs tokenised and written together
BLOCK = 2**20  # bytes or positions handled together


@dataclass
class Skipped:
    """What reading left out: how many lines for each reason, and the first of them."""

    counts: Counter[str] = field(default_factory=Counter)  # reason -> lines
    examples: list[str] = field(default_factory=list)  # "file:line: what was found and what is expected"

    def add(self, reason: str, message: str) -> None:
        self.counts[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(message)


def read_pairs(
    source: Path | str, langs: Sequence[str], skipped: Skipped, strict: bool = False
) -> Iterator[tuple[str, ...]]:
    """Translations of `source`, normalised, in the order of `langs`.

    `source` is a TSV (one column a language, in the order of `langs`, no quoting, no header), a Parquet file (columns
    named by language), or a prefix: `corpus` where `corpus.en` and `corpus.fr` exist, aligned by line (Moses).
    TSV and Moses files may end in .gz, .xz or .zst. Lines end at a line feed and nowhere else.

    A bad line is counted in `skipped` and left out; with `strict` it raises `BadInput`. So does a source that is
    absent, empty, damaged, without a single good line, or whose files differ in their number of lines.
    """
    files = source_files(source, langs)
    good = number = 0
    first = ""
    for number, row in enumerate(_rows(files, langs), start=1):
        pair, reason, message = _check(row, langs)
        if pair:
            good += 1
            yield pair
            continue
        message = f"{source}:{number}: {message}"
        if strict:
            raise BadInput(message)
        first = first or message
        skipped.add(reason, message)
    if not number:
        raise BadInput(f"{source} is empty; expected one translation a line, in {', '.join(langs)}")
    if not good:
        raise BadInput(f"none of the {number} lines of {source} holds a translation; {first}")


def sentences(
    sources: Iterable[Path | str], langs: Sequence[str], skipped: Skipped | None = None, strict: bool = False
) -> Iterator[str]:
    """Every sentence of every language, to train a tokenizer on; errors as in `read_pairs`."""
    for source in sources:
        for pair in read_pairs(source, langs, Skipped() if skipped is None else skipped, strict):
            yield from pair


def source_files(source: Path | str, langs: Sequence[str]) -> list[Path]:
    """The file that `source` names, or one a language where it is a Moses prefix; `BadInput` where none exists."""
    source = Path(source)
    if source.is_file():
        return [source]
    sides = [[path for end in SUFFIXES if (path := Path(f"{source}.{lang}{end}")).is_file()] for lang in langs]
    if all(sides):
        return [paths[0] for paths in sides]
    if any(sides):
        absent = next(lang for lang, paths in zip(langs, sides, strict=True) if not paths)
        found = next(paths[0] for paths in sides if paths)
        raise BadInput(f"found {found}, but no {source}.{absent} beside it", exit_code=3)
    what = f"{source} is a folder" if source.is_dir() else f"no file {source}"
    aligned = " and ".join(f"{source.name}.{lang}" for lang in langs)
    raise BadInput(f"{what}; expected a .tsv (.gz, .xz, .zst), a .parquet, or a prefix of {aligned}", exit_code=3)


def _check(row: Sequence[bytes | None], langs: Sequence[str]) -> tuple[tuple[str, ...] | None, str, str]:
    """(the normalised translation, "", "") or (None, the reason, what was found and what is expected)."""
    if len(row) != len(langs):
        columns = "column" if len(row) == 1 else "columns"
        return None, "wrong number of columns", f"{len(row)} {columns}, expected {len(langs)} ({', '.join(langs)})"
    try:
        pair = tuple(normalise(side.decode()) if side else "" for side in row)
    except UnicodeDecodeError as error:
        return None, "not UTF-8", f"byte {error.object[error.start]:#04x} is not UTF-8; convert the file to UTF-8"
    if not all(pair):
        return None, "empty side", f"the {langs[pair.index('')]} side is empty; expected text"
    return pair, "", ""


def _rows(files: Sequence[Path], langs: Sequence[str]) -> Iterator[Sequence[bytes | None]]:
    if len(files) > 1:
        return _moses(files)
    if files[0].suffix == ".parquet":
        return _parquet(files[0], langs)
    return (line.split(b"\t") for line in _lines(files[0]))


def _moses(files: Sequence[Path]) -> Iterator[Sequence[bytes]]:
    counts = [0] * len(files)
    for lines in zip_longest(*map(_lines, files)):
        counts = [count + (line is not None) for count, line in zip(counts, lines, strict=True)]
        if None not in lines:
            yield lines
    if len(set(counts)) > 1:
        found = ", ".join(f"{file} has {count}" for file, count in zip(files, counts, strict=True))
        raise BadInput(f"line-aligned files need the same number of lines; {found}")


def _parquet(file: Path, langs: Sequence[str]) -> Iterator[Sequence[bytes | None]]:
    import pyarrow as pa  # slow to import, and only this format needs it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            types = dict(zip(table.schema_arrow.names, table.schema_arrow.types, strict=True))
            for lang in langs:
                if lang not in types:
                    raise BadInput(f"{file} has no column {lang!r}; its columns are {', '.join(types)}")
                if not (pa.types.is_string(types[lang]) or pa.types.is_large_string(types[lang])):
                    raise BadInput(f"column {lang!r} of {file} holds {types[lang]}, expected text")
            for rows in table.iter_batches(CHUNK, columns=list(langs)):
                # as bytes, so that bad UTF-8 is a bad line here too
                columns = [rows.column(lang).cast(pa.large_binary()).to_pylist() for lang in langs]
                yield from zip(*columns, strict=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{file} is not a Parquet file, or is damaged: {error}") from error


def _lines(file: Path) -> Iterator[bytes]:
    """Lines as bytes, without their line feed and a carriage return before it."""
    rest = b""
    for block in _blocks(file):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
        if len(rest) > LONGEST_LINE:
            raise BadInput(f"{file} has a line of more than {LONGEST_LINE} bytes; expected text, one sentence a line")
    if rest:
        yield rest.removesuffix(b"\r")


def _blocks(file: Path) -> Iterator[bytes]:
    try:
        with {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)(file, "rb") as raw:
            if file.suffix == ".zst":
                yield from _unzst(raw)  # to the end of the file
            while block := raw.read(BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise BadInput(f"{file} is cut short or damaged: {error}; fetch it again") from error


def _unzst(raw: BinaryIO) -> Iterator[bytes]:
    """Frame by frame: zstandard's own file reader takes a truncated file for a complete one."""
    frame = None
    while block := raw.read(BLOCK // 8):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(block)
            block, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame:
        raise EOFError("the last frame has no end")


def prepare(
    sources: Sequence[Path | str],
    langs: Sequence[str],
    tokenizer: Tokenizer,
    out: Path | str,
    *,
    min_pieces: int = 5,
    max_pieces: int = 100,
    valid_pairs: int,
    seed: int,
    strict: bool = False,
) -> Corpus:
    """Reads, tokenises and filters `sources` into a store at `out`, and opens its train split.

    A pair stays where every side has `min_pieces` to `max_pieces` pieces, EOS not counted (paper, sec. 4: 5 to 100).
    `valid_pairs` of them are held out by a hash of the first language's case-folded text: all translations of one
    sentence fall on the same side, so a few pairs more than asked may be held out.

    The store appears at `out` complete or not at all. One made before from the same files, tokenizer and settings is
    reused. Raises `BadInput` for bad sources (see `read_pairs`), where no pair is left to train on, and where `out`
    holds anything else.
    """
    out = Path(out)
    limits = {"min_pieces": min_pieces, "max_pieces": max_pieces, "valid_pairs": valid_pairs, "seed": seed}
    if not 1 <= min_pieces <= max_pieces or min(valid_pairs, seed) < 0:
        raise BadInput(f"{limits}; need 1 <= min_pieces <= max_pieces, and nothing negative", 2)
    if not sources or not langs or len(set(langs)) < len(langs):
        raise BadInput(f"{len(sources)} sources in {list(langs)}; expected one or more, and each language once", 2)
    settings = {  # all that decides what a store holds
        "format": FORMAT,
        "sources": [[_sha256(file) for file in source_files(source, langs)] for source in sources],
        "langs": list(langs),
        "tokenizer": tokenizer.sha256,
        **limits,
    }
    if out.exists():
        return _reuse(out, settings, strict)
    work = out.with_name(f".{out.name}.{os.getpid()}.partial")  # a sibling, so that the rename stays on one disk
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    skipped = Skipped()
    try:
        pairs = (pair for source in sources for pair in read_pairs(source, langs, skipped, strict))
        store = {"settings": settings, **_tokenise(pairs, tokenizer, work, settings)}
        store |= {"skipped": skipped.counts, "skipped_examples": skipped.examples}
        _split(work, store)
        (work / "store.json").write_text(json.dumps(store, indent=1, ensure_ascii=False), encoding="utf-8")
        try:
            work.rename(out)
        except OSError:
            if not out.exists():
                raise
            return _reuse(out, settings, strict)  # another process was faster
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Corpus.open(out)


def _reuse(out: Path, settings: Json, strict: bool) -> Corpus:
    corpus = Corpus.open(out)
    if changed := [name for name, value in settings.items() if value != corpus.store["settings"][name]]:
        raise BadInput(f"{out} was made with other {', '.join(changed)}; delete it or choose another folder", 2)
    if strict and corpus.store["skipped"]:
        raise BadInput(corpus.store["skipped_examples"][0])
    return corpus


def _tokenise(pairs: Iterator[tuple[str, ...]], tokenizer: Tokenizer, work: Path, settings: Json) -> Json:
    """Writes ids, offsets and a hash of every pair that stays, and counts."""
    langs: list[str] = settings["langs"]
    dtype = np.dtype("uint16" if tokenizer.vocab_size <= 2**16 else "uint32")
    counts = Counter({"kept": 0, "too short": 0, "too long": 0})
    tokens, longest = dict.fromkeys(langs, 0), dict.fromkeys(langs, 0)  # EOS included
    salt = settings["seed"].to_bytes(16, "little")
    names = [f"{lang}.{kind}" for lang in langs for kind in ("ids", "offsets")] + ["hashes"]
    with ExitStack() as stack:
        files = {path: stack.enter_context((work / path).open("wb")) for path in names}
        for lang in langs:
            files[f"{lang}.offsets"].write(np.zeros(1, np.int64).tobytes())
        while chunk := list(islice(pairs, CHUNK)):
            sides = [tokenizer.encode(texts) for texts in zip(*chunk, strict=True)]
            lengths = np.array([[len(ids) for ids in side] for side in sides])  # (languages, pairs), EOS included
            short = (lengths - 1 < settings["min_pieces"]).any(axis=0)
            long = ~short & (lengths - 1 > settings["max_pieces"]).any(axis=0)
            kept = np.flatnonzero(~short & ~long)
            counts.update({"kept": len(kept), "too short": int(short.sum()), "too long": int(long.sum())})
            for lang, side, of_side in zip(langs, sides, lengths[:, kept], strict=True):
                files[f"{lang}.ids"].write(b"".join(np.array(side[i], dtype).tobytes() for i in kept))
                files[f"{lang}.offsets"].write((tokens[lang] + of_side.cumsum(dtype=np.int64)).tobytes())
                tokens[lang] += int(of_side.sum())
                longest[lang] = int(of_side.max(initial=longest[lang]))
            firsts = (chunk[i][0].casefold().encode() for i in kept)
            files["hashes"].write(b"".join(blake2b(text, digest_size=8, salt=salt).digest() for text in firsts))
    if not counts["kept"]:
        rule = f"each side needs {settings['min_pieces']} to {settings['max_pieces']} pieces"
        found = f"{counts['too short']} are too short, {counts['too long']} too long"
        raise BadInput(f"no pair is left of {counts.total()}: {rule}, {found}")
    return {"dtype": dtype.name, "pairs": dict(counts), "tokens": tokens, "longest": longest}


def _split(work: Path, store: Json) -> None:
    """Gives the pairs with the smallest hashes to `valid`, and writes the position of every pair of each split."""
    hashes = np.memmap(work / "hashes", np.uint64, "r")
    offsets = [_mapped(work / f"{lang}.offsets", np.int64) for lang in store["settings"]["langs"]]
    wanted = store["settings"]["valid_pairs"]
    smallest = np.zeros(0, np.uint64)
    for start in range(0, len(hashes), BLOCK):
        smallest = np.sort(np.concatenate([smallest, hashes[start : start + BLOCK]]))[:wanted]
    limit = int(smallest[-1]) if wanted else -1
    splits = {split: {"pairs": 0, "tokens": 0} for split in SPLITS}
    with ExitStack() as stack:
        files = {split: stack.enter_context((work / f"{split}.index").open("wb")) for split in SPLITS}
        for start in range(0, len(hashes), BLOCK):
            held_out = hashes[start : start + BLOCK] <= limit
            stop = start + len(held_out) + 1
            longer = np.max([np.diff(of_lang[start:stop]) for of_lang in offsets], axis=0)
            for split, chosen in (("train", ~held_out), ("valid", held_out)):
                files[split].write((start + np.flatnonzero(chosen)).astype(np.int64).tobytes())
                splits[split]["pairs"] += int(chosen.sum())
                splits[split]["tokens"] += int(longer[chosen].sum())
    if not splits["train"]["pairs"]:
        raise BadInput(f"valid_pairs={wanted} leaves no pair to train on; the sources give {len(hashes)}", 2)
    store["splits"] = splits
    (work / "hashes").unlink()


def _sha256(file: Path) -> str:
    with file.open("rb") as raw:
        return file_digest(raw, "sha256").hexdigest()


def _mapped(file: Path, dtype: np.dtype | type) -> np.ndarray:
    if not file.stat().st_size:  # an empty file can't be mapped
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(file, dtype, "r"))  # a plain array: slices of a memmap cost more


class Corpus:
    """One split of a token store: N translations as piece ids, mapped read-only from disk.

    `store` is what `store.json` says: settings, sources, what was kept, dropped and skipped, and why.
    """

    def __init__(self, folder: Path, split: str, store: Json):
        """Use `Corpus.open`, which checks the files."""
        self.folder, self.split, self.store = folder, split, store
        self.langs: tuple[str, ...] = tuple(store["settings"]["langs"])
        self.tokens: int = store["splits"][split]["tokens"]  # of the longer side of each pair, EOS included
        self._index = _mapped(folder / f"{split}.index", np.int64)
        self._ids = {lang: _mapped(folder / f"{lang}.ids", np.dtype(store["dtype"])) for lang in self.langs}
        self._offsets = {lang: _mapped(folder / f"{lang}.offsets", np.int64) for lang in self.langs}

    @classmethod
    def open(cls, folder: Path | str, split: str = "train") -> Corpus:
        """Raises `BadInput` where `folder` holds no store, a damaged one, or one of another format."""
        folder = Path(folder)
        if split not in SPLITS:
            raise BadInput(f"no split {split!r}; choose from {', '.join(SPLITS)}", 2)
        try:
            store = json.loads((folder / "store.json").read_text(encoding="utf-8"))
            if store["settings"]["format"] == FORMAT:
                found = {file.name: file.stat().st_size for file in folder.iterdir()}
                wrong = [name for name, size in _sizes(store).items() if found.get(name) != size]
            else:
                wrong = ["store.json"]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise BadInput(f"{folder} holds no token store", 3) from error
        except (ValueError, KeyError, TypeError):
            wrong = ["store.json"]
        if wrong:
            raise BadInput(f"{folder} is damaged, or of another version: {', '.join(wrong)}; prepare it again")
        return cls(folder, split, store)

    def __len__(self) -> int:
        return len(self._index)

    def lengths(self, indices: np.ndarray) -> np.ndarray:
        """Pieces of each side of B pairs, EOS included, (B, languages)."""
        places = self._index[indices]
        return np.stack([of_lang[places + 1] - of_lang[places] for of_lang in self._offsets.values()], axis=1)

    def sentence(self, lang: str, index: int) -> np.ndarray:
        """Piece ids of one side of pair `index`, the last one EOS, (T,)."""
        return self.take(lang, np.array([index]))[0]

    def take(self, lang: str, indices: np.ndarray) -> list[np.ndarray]:
        """Piece ids of one side of B pairs: B arrays (T,), read-only views of the file."""
        ids, places = self._ids[lang], self._index[indices]
        starts, stops = self._offsets[lang][places], self._offsets[lang][places + 1]
        return [ids[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def _sizes(store: Json) -> dict[str, int]:
    """Bytes that each file of a whole store has."""
    item, pairs = np.dtype(store["dtype"]).itemsize, store["pairs"]["kept"]
    sizes = {f"{split}.index": 8 * store["splits"][split]["pairs"] for split in SPLITS}
    for lang in store["settings"]["langs"]:
        sizes |= {f"{lang}.ids": item * store["tokens"][lang], f"{lang}.offsets": 8 * (pairs + 1)}
    return sizes
