"""Find translations in two texts: find nearest neighbours in both directions, and score pairs of sentences by a margin.

Scores and retrieval follow Artetxe and Schwenk (ACL 2019, "Margin-based Parallel Corpus Mining with Multilingual
Sentence Embeddings"). The cosine of a pair is compared with the cosines of the nearest neighbours of both sentences, so
that a sentence that is similar to many others has low scores.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder, silent
from bgt_core.data.columns import text_columns
from bgt_core.data.text import normalise, sentence_list
from bgt_core.data.textfile import lines, text_lines
from bgt_core.errors import DataError, UsageError, check_choice, check_whole
from bgt_core.files import atomic_file
from bgt_core.neighbours.search import Report, Rows, SearchPlan, approximate, chunks, exact, load_faiss, search
from bgt_core.vectors.arrays import check_finite, holds_vectors, listed, matrix, numbers, read_npy

INDEXES = ("exact", "approximate")
MARGINS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # (cosine, mean cosine of neighbours) -> margin
    "ratio": lambda cosine, mean: cosine / np.maximum(mean, 0.01),  # in a small text the mean may be 0 or negative
    "distance": lambda cosine, mean: cosine - mean,
    "absolute": lambda cosine, mean: cosine,
}

Neighbours = tuple[np.ndarray, np.ndarray]  # (N, k) cosines, descending, and (N, k) row numbers in the other text


class Pairs(NamedTuple):
    """P candidate pairs of translations: row numbers in the left and the right text, with scores."""

    scores: np.ndarray  # (P,) float64, by the chosen margin
    left: np.ndarray  # (P,) int64, row numbers
    right: np.ndarray  # (P,) int64, row numbers

    def take(self, chosen: np.ndarray) -> Pairs:
        """Return the pairs with these indices, or where a mask is true."""
        return Pairs(self.scores[chosen], self.left[chosen], self.right[chosen])


@dataclass(frozen=True, eq=False)
class Sentences:
    """The N distinct sentences of a text, in order. Copies are left out, so that all nearest neighbours differ."""

    texts: list[str]  # (N,) sentences, normalised by `data.text.normalise`
    first: np.ndarray  # (N,) index of the first line with each sentence
    of_line: np.ndarray  # (lines,) index of each line's sentence; -1 for a blank line


Side = Sequence[str] | Sentences | np.ndarray | Rows  # vectors may have any form that `vectors.arrays` accepts


class Kept(NamedTuple):
    """The result of a rule that keeps some candidate pairs: counts of pairs, from which precision and recall follow."""

    rule: str  # "all", "threshold", "best threshold" or "best of the other half"
    thresholds: tuple[float, ...]
    correct: int  # number of kept pairs that are known translations
    kept: int  # number of kept pairs
    known: int  # number of known translations

    @property
    def precision(self) -> float:
        """Share of the kept pairs that are known translations; 0 if no pair is kept."""
        return self.correct / max(self.kept, 1)

    @property
    def recall(self) -> float:
        """Share of the known translations that are kept."""
        return self.correct / self.known

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.kept + self.known)


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidate translations, best first. Row numbers are indices in the sentences or vectors given to `mine`."""

    candidates: Pairs  # all candidates, also below the threshold
    threshold: float
    plan: SearchPlan  # how neighbours were searched; str(plan) describes it
    sizes: tuple[int, int]  # numbers of distinct sentences in both texts
    first_of: Sequence[np.ndarray | None] = (None, None)  # for a list of sentences: index of each sentence's first copy

    @property
    def pairs(self) -> Pairs:
        """The candidate pairs whose scores reach the threshold."""
        return self.candidates.take(self.candidates.scores >= self.threshold)

    def against(self, left: np.ndarray, right: np.ndarray) -> list[Kept]:
        """Compare the candidates with G known translations, given as row numbers (G,) in both texts.

        If a known translation is given several times, it counts once.

        Returns:
            The counts for up to four rules. "all" keeps all pairs; "threshold" keeps the pairs that reach `threshold`,
            if it is set; "best threshold" uses the threshold with the best F1. "best of the other half" chooses the
            threshold for pairs with even left row numbers on the pairs with odd left row numbers, and vice versa.
        """
        sides = zip((left, right), self.first_of, strict=True)
        known = [rows if first is None else first[rows] for rows, first in sides]
        known_left, known_right = np.unique(np.stack(known), axis=1)
        (scores, rows, others), count = self.candidates, len(known_left)
        width = max(others.max(initial=0), known_right.max(initial=0)) + 1
        correct = np.isin(rows * width + others, known_left * width + known_right)

        def kept(rule: str, thresholds: tuple[float, ...], of_pair: np.ndarray | float) -> Kept:
            above = scores >= of_pair
            return Kept(rule, thresholds, int((above & correct).sum()), int(above.sum()), count)

        best, half = best_threshold(scores, correct, count), rows % 2
        of_half = [
            best_threshold(scores[half == i], correct[half == i], int((known_left % 2 == i).sum())) for i in (1, 0)
        ]
        return [
            kept("all", (), -np.inf),
            *([kept("threshold", (self.threshold,), self.threshold)] if self.threshold > -np.inf else []),
            kept("best threshold", (best,), best),
            kept("best of the other half", (of_half[0], of_half[1]), np.array(of_half)[half]),
        ]


def best_threshold(scores: np.ndarray, correct: np.ndarray, known: int) -> float:
    """Return the threshold with the highest F1, halfway between two scores; infinite if no pair is correct."""
    order = np.argsort(-scores, kind="stable")
    falling, hits = scores[order].astype(np.float64), correct[order].cumsum()
    last = np.append(falling[1:] < falling[:-1], True)[: len(falling)]  # a threshold can't separate equal scores
    f1 = np.where(last, 2 * hits / (np.arange(1, len(falling) + 1) + known), 0)
    if not f1.any():
        return np.inf
    best = int(f1.argmax())
    return float(falling[best : best + 2].mean())


def check(k: int, margin: str, index: str, recall: float, threshold: float = -math.inf) -> None:
    """Raise UsageError for a setting that `mine` does not allow."""
    check_whole(1, k=k)
    check_choice(MARGINS, margin=str(margin))
    check_choice(INDEXES, index=str(index))
    if not (isinstance(recall, Real) and 0 < recall <= 1):
        raise UsageError(f"{recall}: expected a share above 0 and up to 1, such as 0.95.", parameter="recall")
    if not isinstance(threshold, Real) or math.isnan(threshold):
        raise UsageError(f"{threshold}: expected a number, the minimum score.", parameter="threshold")


def mine(
    left: Side,
    right: Side,
    *,
    encoder: SentenceEncoder | None = None,
    langs: Sequence[str] | None = None,
    k: int = 4,
    margin: str = "ratio",
    threshold: float = -math.inf,
    index: str = "exact",
    recall: float = 0.95,
    report: Report = silent,
) -> Mined:
    """Find translations in two texts: sentences that are more similar to each other than to other neighbours.

        mined = mine(english, french, encoder=bgt_core.load(), langs=("en", "fr"), threshold=1.1)
        for score, i, j in zip(*mined.pairs):
            print(score, english[i], french[j])

    The score of a left row x and a right row y is the margin between two numbers: the cosine of x and y, and the mean
    of the cosines of x with its k nearest right rows and of y with its k nearest left rows. Each row of both texts
    proposes the pair with its best neighbour. The proposed pairs are then accepted, the best first, but a pair is
    rejected if one of its rows is already in an accepted pair.

    Args:
        left, right: A list of sentences (copies and blank sentences are ignored); `Sentences` from a file; vectors
            (N, D) in any form that `vectors.arrays` accepts; or `Rows` of a file of vectors.
        encoder, langs: The encoder, and the languages of `left` and `right`; needed only for sentences. Their vectors
            are kept in memory. For millions of sentences, write the vectors to files with `bgt embed`, and give `Rows`
            of these files.
        k: Number of nearest neighbours over which the mean cosine is computed.
        margin: "ratio", "distance", or "absolute", which is the cosine itself.
        threshold: Minimum score of a pair.
        index: "exact", which compares all pairs, or "approximate".
        recall: Share of the nearest neighbours that approximate search must find.
        report: Called with the number of finished blocks and the number of all blocks.

    Raises:
        UsageError: The arguments are inconsistent, or the encoder lacks a language.
        DataError: `left` or `right` is empty, the vectors differ in width, or `matrix` rejects them.
        NotFound: FAISS is not installed.
    """
    load_faiss()  # fail now, not after the slow embedding, if FAISS is absent
    check(k, margin, index, recall, threshold)
    named = zip((left, right), ("left", "right"), strict=True)
    texts = [side if isinstance(side, Sentences | Rows) else to_side(side, name) for side, name in named]
    one, other = to_rows(texts, encoder, text_columns(langs)[1] if isinstance(langs, str) else langs)
    plan = exact(one, other) if index == "exact" else approximate(one, other, recall=recall)
    there = search(one, other, plan.forward, k, plan.assignments, report)
    back = search(other, one, plan.backward, k, plan.assignments, report)
    candidates = pairs_of(there, back, margin)
    lists = [
        text if isinstance(text, Sentences) and text is not side else None
        for side, text in zip((left, right), texts, strict=True)
    ]
    columns = [text.first[column] if text else column for text, column in zip(lists, candidates[1:], strict=True)]
    first_of = [np.where(text.of_line < 0, -1, text.first[text.of_line]) if text else None for text in lists]
    return Mined(Pairs(candidates.scores, *columns), threshold, plan, (len(one), len(other)), first_of)


def to_side(given: object, name: str) -> Sentences | Rows:
    """Convert a text, `left` or `right`, to distinct sentences or to vectors; error messages contain `name`."""
    given = listed(given)
    if not holds_vectors(given):
        return distinct(sentence_list(given, name))  # type: ignore[arg-type]
    vectors = numbers(given, name)
    check_finite(vectors, name)
    if not len(vectors):
        raise DataError(f"{name}: no vectors; expected at least one.")
    return Rows(vectors, np.arange(len(vectors)))


def to_rows(
    sides: Sequence[Sentences | Rows], encoder: SentenceEncoder | None, langs: Sequence[str] | None
) -> list[Rows]:
    """Return the vectors of both texts; if a text consists of sentences, embed them. Raises the errors of `mine`."""
    if all(isinstance(side, Rows) for side in sides):
        return [side for side in sides if isinstance(side, Rows)]
    if encoder is None or langs is None:
        text = "and an encoder are needed to embed sentences, as in en,fr; or give vectors."
        raise UsageError(text, parameter="langs")
    if len(langs) != len(sides):
        raise UsageError(f"{','.join(langs)}: expected {len(sides)} languages, as in en,fr.", parameter="langs")
    for lang in langs:
        encoder.embed([], lang=lang)  # an unknown language raises an error before the first text is embedded
    if any(isinstance(side, Sentences) and not side.texts for side in sides):
        raise DataError("One of the texts has no sentences: it is empty or blank.")
    rows = []
    for side, lang in zip(sides, langs, strict=True):
        if isinstance(side, Sentences):
            texts = side.texts
            vectors = matrix(encoder.embed(texts, lang=lang), lang, (len(texts), "D"), texts=texts)
            side = Rows(vectors, np.arange(len(vectors)))
        rows.append(side)
    return rows


def pairs_of(there: Neighbours, back: Neighbours, margin: str = "ratio") -> Pairs:
    """Score and choose sentence pairs as `mine` does, given the k nearest neighbours of all rows, (N, k) and (M, k)."""
    means = [
        np.where(nearest >= 0, cosines, 0).sum(1) / np.maximum((nearest >= 0).sum(1), 1)  # -1: no neighbour
        for cosines, nearest in (there, back)
    ]
    scores, partner = _best(margin, *there, means[0], means[1])
    back_scores, back_partner = _best(margin, *back, means[1], means[0])
    pairs = Pairs(
        np.concatenate([scores, back_scores]),
        np.concatenate([np.arange(len(scores)), back_partner]),
        np.concatenate([partner, np.arange(len(back_scores))]),
    )
    free_left, free_right = bytearray(b"\1" * len(scores)), bytearray(b"\1" * len(back_scores))
    kept: list[np.ndarray] = []
    for chosen in chunks(np.lexsort((pairs.right, pairs.left, -pairs.scores))):
        keep = []
        for left, right in zip(pairs.left[chosen].tolist(), pairs.right[chosen].tolist(), strict=True):
            keep.append(free_left[left] and free_right[right])
            if keep[-1]:
                free_left[left] = free_right[right] = 0
        kept.append(chosen[np.array(keep, dtype=bool)])
    pairs = pairs.take(np.concatenate(kept))
    return pairs.take(np.isfinite(pairs.scores))  # rows that were not compared with any row have no finite score


def _best(
    margin: str, cosines: np.ndarray, nearest: np.ndarray, own: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the score and the row number, (N,) each, of the neighbour with which each row has the highest score.

    `own` and `other` are the mean cosines of the rows and of the possible neighbours.
    """
    scores = MARGINS[margin](cosines, (own[:, None] + other[nearest]) / 2)  # (N, k)
    scores[nearest < 0] = -np.inf
    rank = scores.argmax(1)[:, None]
    return np.take_along_axis(scores, rank, 1)[:, 0], np.take_along_axis(nearest, rank, 1)[:, 0]


# The following functions read texts, vectors of their lines, and known translations, and write the pairs found.


def distinct(sentences: Iterable[str]) -> Sentences:
    """Normalise sentences, and leave out copies and blank sentences."""
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
    """Read the sentences of a UTF-8 file with one sentence per line; UsageError for a file of vectors."""
    if path.suffix == ".npy":
        raise UsageError(f"takes {path}, which contains vectors; give their text as an argument.", parameter="vectors")
    sentences = distinct(line for _, line in text_lines(path, sentences=True))
    if not sentences.texts:
        raise DataError(f"{path}: empty; expected one sentence per line.")
    return sentences


def read_vectors(path: Path, sentences: Sentences) -> Rows:
    """Memory-map a .npy file of vectors, which `bgt embed` wrote for the lines of a text.

    Raises NotFound if the file can't be read, DataError unless it has one row of finite numbers for each line.
    """
    vectors, count = read_npy(path), len(sentences.of_line)
    if vectors.ndim and len(vectors) != count:
        raise DataError(f"{path}: {len(vectors)} rows; expected a row of numbers for each of {count} lines of text.")
    check_finite(numbers(vectors, str(path)), str(path))
    return Rows(vectors, sentences.first)


def read_gold(path: Path, left: Sentences, right: Sentences) -> tuple[np.ndarray, np.ndarray]:
    """Read G known translations, one per line: line number in the left text, a tab, line number in the right text.

    Lines are counted from 1. Returns the indices (G,) of the sentences in both texts. Raises DataError, with the line
    number, for an invalid line.
    """
    rows: list[tuple[int, int]] = []
    for number, line in enumerate(lines(path), 1):
        try:
            left_line, right_line = (int(field) - 1 for field in line.split(b"\t")[:2])
            if min(left_line, right_line) < 0:
                raise ValueError(line)
            pair = int(left.of_line[left_line]), int(right.of_line[right_line])
        except (ValueError, IndexError):
            expected = f"two line numbers, at most {len(left.of_line)} <tab> {len(right.of_line)}"
            shown = repr(line[:60].decode("utf-8", "replace"))
            raise DataError(f"{path}:{number}: expected {expected}, found {shown}.") from None
        if min(pair) < 0:
            raise DataError(f"{path}:{number}: refers to a blank line; expected a line with a sentence.")
        rows.append(pair)
    if not rows:
        raise DataError(f"{path}: empty; expected two line numbers per line.")
    known = np.unique(np.array(rows), axis=0)
    return known[:, 0], known[:, 1]


def write_pairs(out: Path, pairs: Pairs, left: Sentences, right: Sentences) -> None:
    """Write sentence pairs to a TSV, completely or not at all: score, both line numbers, and both sentences."""
    with atomic_file(out) as partial, partial.open("w", encoding="utf-8") as file:
        for score, row, other in zip(*(column.tolist() for column in pairs), strict=True):
            numbers = f"{score:.5f}\t{left.first[row] + 1}\t{right.first[other] + 1}"
            file.write(f"{numbers}\t{left.texts[row]}\t{right.texts[other]}\n")
