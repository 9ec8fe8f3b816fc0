"""The token store: translations tokenised, filtered and split, on disk.

    `read_pairs` -> `prepare` -> `Corpus`

Nothing here holds a corpus in memory: pairs stream in, piece ids stream out, and a `Corpus` maps them read-only.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bgt_core.data.parallel import Skipped, read_pairs, source_files
from bgt_core.errors import BadInput
from bgt_core.text import Tokenizer

Json = dict[str, Any]

FORMAT = 1  # of the store; goes up when its files change, so that an old store is never misread
SPLITS = ("train", "valid")
CHUNK = 4096  # pairs tokenised and written together
BLOCK = 2**20  # positions handled together


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
        found = f"valid_pairs={wanted} leaves no pair to train on; the sources give {len(hashes)}"
        raise BadInput(f"{found}: hold out fewer", 2)
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
