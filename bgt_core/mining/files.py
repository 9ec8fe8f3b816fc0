"""Read and write the files of mining: texts, vectors of their lines, known translations, tables of pairs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bgt_core.data.text import normalise
from bgt_core.data.textfile import lines, text_lines
from bgt_core.errors import DataError, UsageError
from bgt_core.files import atomic_file
from bgt_core.mining.margin import Pairs
from bgt_core.mining.neighbours import Rows
from bgt_core.vectors.arrays import read_npy
from bgt_core.vectors.convert import check_finite, numbers


@dataclass(frozen=True, eq=False)
class Sentences:
    """The N distinct sentences of a text, in order: copies would be each other's nearest neighbours."""

    texts: list[str]  # normalised
    first: np.ndarray  # (N,) the first line of each, from 0
    of_line: np.ndarray  # (lines,) the index of each line's sentence; -1 for a blank line


def distinct(sentences: Iterable[str]) -> Sentences:
    """The distinct sentences among these, normalised, without blank ones."""
    seen: dict[str, int] = {}
    first, of_line = array("q"), array("q")
    for number, sentence in enumerate(sentences):
        text = normalise(sentence)
        if text and text not in seen:
            seen[text] = len(seen)
            first.append(number)
        of_line.append(seen[text] if text else -1)
    return Sentences(list(seen), np.array(first), np.array(of_line))


def read_sentences(path: Path) -> Sentences:
    """Read one sentence per line, UTF-8 (plain, .gz, .xz, .zst).

    Raises UsageError for a file of vectors, NotFound for an absent one, DataError for one that isn't text.
    """
    if path.suffix == ".npy":
        raise UsageError(f"takes {path}, which holds vectors; give its text as an argument.", parameter="vectors")
    sentences = distinct(line for _, line in text_lines(path, sentences=True))
    if not sentences.texts:
        raise DataError(f"{path}: empty; expected one sentence per line.")
    return sentences


def read_vectors(path: Path, sentences: Sentences) -> Rows:
    """Map the vectors of a text's lines, as `bgt embed` writes them: a .npy.

    Raises NotFound if it can't be read, DataError unless it holds finite numbers, a row for each line.
    """
    vectors, count = read_npy(path), len(sentences.of_line)
    if vectors.ndim and len(vectors) != count:
        raise DataError(f"{path}: {len(vectors)} rows; expected a row of numbers for each of {count} lines of text.")
    check_finite(numbers(vectors, str(path)), str(path))
    return Rows(vectors, sentences.first)


def read_gold(path: Path, left: Sentences, right: Sentences) -> tuple[np.ndarray, np.ndarray]:
    """Read known translations, lines "line of the left text <tab> line of the right", from 1: rows (G,), (G,) of the
    texts.

    Raises DataError for an invalid line, with its number.
    """
    rows: list[tuple[int, int]] = []
    for number, line in enumerate(lines(path), 1):
        try:
            left_line, right_line = (int(field) - 1 for field in line.split(b"\t")[:2])
            if min(left_line, right_line) < 0:
                raise ValueError(line)
            pair = int(left.of_line[left_line]), int(right.of_line[right_line])
        except (ValueError, IndexError):
            expected = f"two line numbers, up to {len(left.of_line)} <tab> {len(right.of_line)}"
            shown = repr(line[:60].decode("utf-8", "replace"))
            raise DataError(f"{path}:{number}: expected {expected}, found {shown}.") from None
        if min(pair) < 0:
            raise DataError(f"{path}:{number}: refers to a blank line; expected one with a sentence.")
        rows.append(pair)
    if not rows:
        raise DataError(f"{path}: empty; expected two line numbers per line.")
    known = np.unique(np.array(rows), axis=0)
    return known[:, 0], known[:, 1]


def write_pairs(out: Path, pairs: Pairs, left: Sentences, right: Sentences) -> None:
    """Write lines "score, line of the left text, line of the right, both sentences", tab-separated; lines from 1.

    The file is complete or absent; NotFound if it can't be written.
    """
    with atomic_file(out) as partial, partial.open("w", encoding="utf-8") as file:
        for score, row, other in zip(*(column.tolist() for column in pairs), strict=True):
            numbers = f"{score:.5f}\t{left.first[row] + 1}\t{right.first[other] + 1}"
            file.write(f"{numbers}\t{left.texts[row]}\t{right.texts[other]}\n")
