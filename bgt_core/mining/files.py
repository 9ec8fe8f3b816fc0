"""What mining reads and writes: texts, vectors of their lines, known translations, tables of pairs."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.parallel import lines
from bgt_core.data.text import normalise
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import writing
from bgt_core.mining.margin import Pairs
from bgt_core.mining.neighbours import BLOCK, Rows


class Sentences(NamedTuple):
    """The N distinct sentences of a text, in order: copies of one would fill each other's neighbourhoods."""

    texts: list[str]  # normalised
    first: np.ndarray  # (N,) the line that each is on first, from 0
    of_line: np.ndarray  # (lines,) which of them a line holds; -1 for a blank one


def read_sentences(path: Path) -> Sentences:
    """One sentence a line, UTF-8 (plain, .gz, .xz, .zst). Raises BgtError for a file that isn't that, by line."""
    if path.suffix == ".npy":
        raise UsageError(f"{path}: name the sentences here, and their vectors with --vectors.")
    seen: dict[str, int] = {}
    first, of_line = array("q"), array("q")
    for number, line in enumerate(lines(path)):
        try:
            text = normalise(line.decode())
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number + 1}: not UTF-8; convert the file to UTF-8.") from None
        if text and text not in seen:
            seen[text] = len(seen)
            first.append(number)
        of_line.append(seen[text] if text else -1)
    if not seen:
        raise DataError(f"{path}: empty; expected one sentence a line.")
    return Sentences(list(seen), np.array(first), np.array(of_line))


def embed(embedder: SentenceEncoder, texts: Sequence[Sentences], langs: Sequence[str]) -> list[Rows]:
    """Semantic vectors of the sentences of each text, in memory; for millions of them `bgt embed` writes files.

    Raises BgtError for a language that the model lacks, or another number of languages than of texts.
    """
    if len(langs) != len(texts):
        raise UsageError(f"langs {','.join(langs)}: expected {len(texts)}, as in en,fr.")
    for lang in langs:
        embedder.embed([], lang=lang)  # says that it is unknown now, not after the other has been embedded
    vectors = [embedder.embed(text.texts, lang=lang) for text, lang in zip(texts, langs, strict=True)]
    return [Rows(side, np.arange(len(side))) for side in vectors]


def read_vectors(path: Path, sentences: Sentences) -> Rows:
    """Vectors of a text's lines, as `bgt embed` writes them: a .npy, mapped and not loaded.

    Raises BgtError unless it holds finite numbers, a row for each line.
    """
    try:
        vectors = np.load(path, mmap_mode="r")
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None
    except (ValueError, EOFError) as error:
        raise DataError(f"{path}: not a .npy file of vectors, or damaged ({error}).") from None
    count = len(sentences.of_line)
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != count:
        raise DataError(f"{path}: expected a row of numbers for each of {count} lines of text.")
    for start in range(0, count, BLOCK):
        bad = np.flatnonzero(~np.isfinite(vectors[start : start + BLOCK]).all(1))
        if len(bad):
            raise DataError(f"{path}: row {start + bad[0] + 1} holds infinity or no number; embed the text again.")
    return Rows(vectors, sentences.first)


def read_gold(path: Path, left: Sentences, right: Sentences) -> tuple[np.ndarray, np.ndarray]:
    """Pairs known to be translations, lines "line of the left text <tab> line of the right", from 1: rows of either.

    Raises BgtError, by line, for what is no such pair.
    """
    rows: list[tuple[int, int]] = []
    for number, line in enumerate(lines(path), 1):
        try:
            one, two = (int(field) - 1 for field in line.split(b"\t")[:2])
            if min(one, two) < 0:
                raise ValueError(line)
            pair = int(left.of_line[one]), int(right.of_line[two])
        except (ValueError, IndexError):
            what = f"two line numbers, up to {len(left.of_line)} <tab> {len(right.of_line)}"
            found = repr(line[:60].decode("utf-8", "replace"))
            raise DataError(f"{path}:{number}: expected {what}, found {found}.") from None
        if min(pair) < 0:
            raise DataError(f"{path}:{number}: names a blank line; expected a sentence.")
        rows.append(pair)
    if not rows:
        raise DataError(f"{path}: empty; expected two line numbers a line.")
    known = np.unique(np.array(rows), axis=0)
    return known[:, 0], known[:, 1]


def write_pairs(out: Path, pairs: Pairs, left: Sentences, right: Sentences) -> None:
    """Lines "score, line of the left text, line of the right, both sentences", tab-separated; lines from 1.

    The file is whole or not there; BgtError where it can't be written.
    """
    partial = out.with_name(out.name + ".partial")
    try:
        with writing(out):
            with partial.open("w", encoding="utf-8") as file:
                for score, one, two in zip(*(column.tolist() for column in pairs), strict=True):
                    numbers = f"{score:.5f}\t{left.first[one] + 1}\t{right.first[two] + 1}"
                    file.write(f"{numbers}\t{left.texts[one]}\t{right.texts[two]}\n")
            os.replace(partial, out)
    finally:
        partial.unlink(missing_ok=True)
