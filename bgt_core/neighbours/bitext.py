"""Bitext mining in one call, for `bgt mine`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import cast

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.data.text import normalise, sentence_list
from bgt_core.data.textfile import lines, text_lines
from bgt_core.errors import DataError, UsageError
from bgt_core.files import atomic_file
from bgt_core.neighbours import margin
from bgt_core.neighbours.margin import Pairs, check, margin_pairs, rescore
from bgt_core.neighbours.search import Report, Rows, SearchPlan, load_faiss, planner, silent
from bgt_core.vectors.convert import check_finite, holds_vectors, listed, matrix, numbers, read_npy


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidate translations, best first. Their rows index the mined entries: sentences, or vectors."""

    candidates: Pairs  # all of them
    threshold: float
    plan: SearchPlan  # the search for neighbours, which str(plan) describes
    sizes: tuple[int, int]  # distinct sentences of each side
    first_of: Sequence[np.ndarray | None] = (None, None)  # the first copy of each entry of a list, which is its row

    @property
    def pairs(self) -> Pairs:
        """The candidates that reach the threshold."""
        return self.candidates.take(self.candidates.scores >= self.threshold)

    def against(self, left: np.ndarray, right: np.ndarray) -> list[margin.Kept]:
        """Count how many of the known translations, rows (G,) and (G,), the candidates contain at several
        thresholds. Known translations that are copies of others count once."""
        sides = zip((left, right), self.first_of, strict=True)
        known = [rows if first is None else first[rows] for rows, first in sides]
        known_left, known_right = np.unique(np.stack(known), axis=1)
        return margin.at_thresholds(self.candidates, known_left, known_right, self.threshold)


def mine(
    left: Side,
    right: Side,
    *,
    encoder: SentenceEncoder | None = None,
    langs: Sequence[str] | None = None,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float = -math.inf,
    index: str = "exact",
    recall: float = 0.95,
    rescored: bool = False,
    report: Report = silent,
) -> Mined:
    """Find translations in two texts, by the margin of their cosine over that of other candidates.

        mined = mine(english, french, encoder=bgt_core.load(), langs=("en", "fr"), threshold=1.1)
        for score, i, j in zip(*mined.pairs):
            print(score, english[i], french[j])

    A side is a list of sentences, without copies and blank ones; `Sentences`, read from a file; or vectors, (N, D), of
    any kind that `vectors.convert` takes, or `Rows` of a file. Sentences need `encoder` and the two `langs`. `k`,
    `margin` and `retrieval` are as in `margin_pairs`, `index` ("exact" or "approximate") and `recall` as in `planner`;
    with `rescored`, candidates that reach `threshold` in an approximate search get exact scores. `report` gets the
    number of blocks done, and of all blocks.

    Raises UsageError for inconsistent arguments or a language that the encoder lacks, DataError for a side without
    sentences or vectors, for vectors of different widths, and as `matrix`; NotFound if FAISS is not installed.
    """
    load_faiss()  # raises at once if FAISS is absent
    check(k, margin, retrieval)
    plan_for = planner(index, recall)
    if not isinstance(threshold, Real) or math.isnan(threshold):
        raise UsageError(f"{threshold}: expected a score, a number.", parameter="threshold")
    texts = [
        side if isinstance(side, Sentences | Rows) else to_side(side, name)
        for side, name in ((left, "left"), (right, "right"))
    ]
    rows = to_rows(texts, encoder, text_columns(langs)[1] if isinstance(langs, str) else langs)
    plan = plan_for(*rows)
    candidates = margin_pairs(*rows, plan, k=k, margin=margin, retrieval=retrieval, report=report)
    if rescored:
        reached = candidates.take(candidates.scores >= threshold)
        candidates = rescore(reached, *rows, k=k, margin=margin, report=report)
    lists = [
        text if isinstance(text, Sentences) and text is not side else None
        for side, text in zip((left, right), texts, strict=True)
    ]
    columns = [text.first[column] if text else column for text, column in zip(lists, candidates[1:], strict=True)]
    first_of = [np.where(text.of_line < 0, -1, text.first[text.of_line]) if text else None for text in lists]
    return Mined(Pairs(candidates.scores, *columns), threshold, plan, (len(rows[0]), len(rows[1])), first_of)


def to_rows(
    sides: Sequence[Sentences | Rows], encoder: SentenceEncoder | None, langs: Sequence[str] | None
) -> tuple[Rows, Rows]:
    """Vectors of both sides; sentences are embedded in memory. (For millions of them use `bgt embed`, which writes
    files.)

    Raises UsageError for sentences without an encoder, unless there are two languages, and for a language that the
    encoder lacks.
    """
    if any(isinstance(side, Sentences) for side in sides):
        if encoder is None or langs is None:
            raise UsageError(
                "and an encoder are needed to embed sentences, as in en,fr; or give vectors.", parameter="langs"
            )
        if len(langs) != len(sides):
            raise UsageError(f"{','.join(langs)}: expected {len(sides)}, as in en,fr.", parameter="langs")
        for lang in langs:
            encoder.embed([], lang=lang)  # an unknown language raises now, not after the first side has been embedded
    if any(isinstance(side, Sentences) and not side.texts for side in sides):
        raise DataError("One side has no sentences: it is empty or blank.")
    left, right = (embedded(side, encoder, lang) for side, lang in zip(sides, langs or ("", ""), strict=True))
    return left, right


def to_side(given: object, name: str) -> Sentences | Rows:
    """Sentences or vectors of one side, which messages call `name`."""
    given = listed(given)
    if not holds_vectors(given):
        return distinct(sentence_list(given, name))  # type: ignore[arg-type]
    vectors = numbers(given, name)
    check_finite(vectors, name)
    if not len(vectors):
        raise DataError(f"{name}: no vectors; expected at least one.")
    return Rows(vectors, np.arange(len(vectors)))


def embedded(side: Sentences | Rows, encoder: SentenceEncoder | None, lang: str) -> Rows:
    """The vectors of one side."""
    if isinstance(side, Rows) or encoder is None:
        return cast(Rows, side)
    vectors = matrix(encoder.embed(side.texts, lang=lang), lang, (len(side.texts), "D"), texts=side.texts)
    return Rows(vectors, np.arange(len(vectors)))


# Read and write the files of mining: texts, vectors of their lines, known translations, tables of pairs.


@dataclass(frozen=True, eq=False)
class Sentences:
    """The N distinct sentences of a text, in order: copies would be each other's nearest neighbours."""

    texts: list[str]  # normalised
    first: np.ndarray  # (N,) the first line of each, from 0
    of_line: np.ndarray  # (lines,) the index of each line's sentence; -1 for a blank line


Side = Sequence[str] | Sentences | np.ndarray | Rows  # an array may be of any kind that `vectors.convert` takes


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
