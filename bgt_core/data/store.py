"""The token store: translations tokenised, filtered and split, on disk.

    `chunks` -> `encode` -> `prepare` -> `Corpus`

Nothing here holds a corpus in memory: rows stream in, piece ids stream out, and a `Corpus` maps them read-only.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from hashlib import file_digest
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from bgt_core.data.encode import MAX_PROCESSES, RowTokenizer, cores, encode
from bgt_core.data.parallel import Audit, Skipped, chunks, source_files
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, NotFound, UsageError

Json = dict[str, Any]

FORMAT = 1  # of the store; goes up when its files change, so that an old store is never misread
SPLITS = ("train", "valid")
BLOCK = 2**16  # positions handled together
SMALL = 2**21  # bytes of sources; less is encoded before other processes have started


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
    workers: int | None = None,
) -> Corpus:
    """Reads, tokenises and filters `sources` into a store at `out`, and opens its train split.

    A pair stays where every side has `min_pieces` to `max_pieces` pieces, EOS not counted (paper, sec. 4: 5 to 100).
    `valid_pairs` of them are held out by a hash of the first language's case-folded text: all translations of one
    sentence fall on the same side, so a few pairs more than asked may be held out.

    `workers` processes share the work, by default one a core; the store is the same whatever their number.

    The store appears at `out` complete or not at all. One made before from the same files, tokenizer and settings is
    reused. Raises `BgtError` for bad sources (see `read_pairs`), where no pair is left to train on, and where `out`
    holds anything else.
    """
    out = Path(out)
    workers = min(cores(), MAX_PROCESSES) if workers is None else workers
    limits = {"min_pieces": min_pieces, "max_pieces": max_pieces, "valid_pairs": valid_pairs, "seed": seed}
    if not 1 <= min_pieces <= max_pieces or min(valid_pairs, seed) < 0:
        raise UsageError(f"{limits}; need 1 <= min_pieces <= max_pieces, and nothing negative")
    if not sources or not langs or len(set(langs)) < len(langs):
        raise UsageError(f"{len(sources)} sources in {list(langs)}; expected one or more, and each language once")
    if workers < 1:
        raise UsageError(f"workers={workers}; expected 1 or more")
    files = [source_files(source, langs) for source in sources]
    settings = {  # all that decides what a store holds
        "format": FORMAT,
        "sources": [[_sha256(file) for file in of_source] for of_source in files],
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
        if sum(file.stat().st_size for of_source in files for file in of_source) < SMALL:
            workers = 1
        encoder = RowTokenizer(tokenizer, tuple(langs), min_pieces, max_pieces, seed)
        store = {"settings": settings, **_encode(sources, encoder, work, skipped, strict, workers)}
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
        raise UsageError(f"{out} was made with other {', '.join(changed)}; delete it or choose another folder")
    if strict and corpus.store["skipped"]:
        raise DataError(corpus.store["skipped_examples"][0])
    return corpus


def _encode(
    sources: Sequence[Path | str], encoder: RowTokenizer, work: Path, skipped: Skipped, strict: bool, workers: int
) -> Json:
    """Writes ids, offsets and a hash of every pair that stays, and counts."""
    langs = encoder.langs
    counts = Counter({"kept": 0, "too short": 0, "too long": 0})
    tokens, longest = dict.fromkeys(langs, 0), dict.fromkeys(langs, 0)  # EOS included
    rows = ((number, chunk) for number, source in enumerate(sources) for chunk in chunks(source, langs))
    names = [f"{lang}.{kind}" for lang in langs for kind in ("ids", "offsets")] + ["hashes"]
    with ExitStack() as stack:
        files = {path: stack.enter_context((work / path).open("wb")) for path in names}
        for lang in langs:
            files[f"{lang}.offsets"].write(np.zeros(1, np.int64).tobytes())
        results = stack.enter_context(closing(encode(encoder, rows, workers)))
        for number, of_source in groupby(results, itemgetter(0)):
            audit = Audit(sources[number], langs, skipped, strict)
            for _, chunk in of_source:
                audit.add(chunk.rows, chunk.bad)
                counts.update({"kept": len(chunk.hashes) // 8, "too short": chunk.short, "too long": chunk.long})
                for lang, ids, lengths in zip(langs, chunk.ids, chunk.lengths, strict=True):
                    of_side = np.frombuffer(lengths, np.int64)
                    files[f"{lang}.ids"].write(ids)
                    files[f"{lang}.offsets"].write((tokens[lang] + of_side.cumsum()).tobytes())
                    tokens[lang] += int(of_side.sum())
                    longest[lang] = int(of_side.max(initial=longest[lang]))
                files["hashes"].write(chunk.hashes)
            audit.end()
    if not counts["kept"]:
        rule = f"each side needs {encoder.min_pieces} to {encoder.max_pieces} pieces"
        found = f"{counts['too short']} are too short, {counts['too long']} too long"
        raise DataError(f"no pair is left of {counts.total()}: {rule}, {found}")
    return {"dtype": encoder.dtype.name, "pairs": dict(counts), "tokens": tokens, "longest": longest}


def _split(work: Path, store: Json) -> None:
    """Gives the pairs with the smallest hashes to `valid`, and writes the position of every pair of each split."""
    wanted, size = store["settings"]["valid_pairs"], store["pairs"]["kept"]
    smallest = np.zeros(0, np.uint64)
    for start in range(0, size, BLOCK):
        smallest = np.sort(np.concatenate([smallest, _read(work / "hashes", np.uint64, start, BLOCK)]))[:wanted]
    limit = int(smallest[-1]) if wanted else -1
    splits = {split: {"pairs": 0, "tokens": 0} for split in SPLITS}
    with ExitStack() as stack:
        files = {split: stack.enter_context((work / f"{split}.index").open("wb")) for split in SPLITS}
        for start in range(0, size, BLOCK):
            held_out = _read(work / "hashes", np.uint64, start, BLOCK) <= limit
            offsets = [_read(work / f"{lang}.offsets", np.int64, start, BLOCK + 1) for lang in store["tokens"]]
            longer = np.max([np.diff(of_lang) for of_lang in offsets], axis=0)
            for split, chosen in (("train", ~held_out), ("valid", held_out)):
                files[split].write((start + np.flatnonzero(chosen)).astype(np.int64).tobytes())
                splits[split]["pairs"] += int(chosen.sum())
                splits[split]["tokens"] += int(longer[chosen].sum())
    if not splits["train"]["pairs"]:
        found = f"valid_pairs={wanted} leaves no pair to train on; the sources give {size}"
        raise UsageError(f"{found}: hold out fewer")
    store["splits"] = splits
    (work / "hashes").unlink()


def _read(file: Path, dtype: type, start: int, count: int) -> np.ndarray:
    """Positions from `start`, at most `count`: read, as pages of a mapped file would pile up in memory."""
    return np.fromfile(file, dtype, count, offset=start * np.dtype(dtype).itemsize)


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
        """Raises `BgtError` where `folder` holds no store, a damaged one, or one of another format."""
        folder = Path(folder)
        if split not in SPLITS:
            raise UsageError(f"no split {split!r}; choose from {', '.join(SPLITS)}")
        try:
            store = json.loads((folder / "store.json").read_text(encoding="utf-8"))
            if store["settings"]["format"] == FORMAT:
                found = {file.name: file.stat().st_size for file in folder.iterdir()}
                wrong = [name for name, size in _sizes(store).items() if found.get(name) != size]
            else:
                wrong = ["store.json"]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"{folder} holds no token store") from error
        except (ValueError, KeyError, TypeError):
            wrong = ["store.json"]
        if wrong:
            raise DataError(f"{folder} is damaged, or of another version: {', '.join(wrong)}; prepare it again")
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
