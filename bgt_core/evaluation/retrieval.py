"""Translation retrieval: whose nearest neighbour in the other language is its translation?

    pairs -> a `Side` a language -> what each sentence finds -> hits, (N,) bool -> a share with its interval

A hit is the sentence of the same line, as LASER's error counts it: a copy of it on another line is a miss. Of equal
sentences the first line is found, whatever order a machine adds numbers in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.mining import scores
from bgt_core.vectors.compare import unit

BLOCK = 1_024  # rows compared with everything at once


class Side(NamedTuple):
    """The N sentences of one language, the U different ones embedded once, so that copies don't crowd out others."""

    vectors: np.ndarray  # (U, D)
    first: np.ndarray  # (U,) the line that each is on first
    of_line: np.ndarray  # (N,) which of them a line holds


class Retrieval(NamedTuple):
    """N pairs searched both ways."""

    there: np.ndarray  # (N,) bool: the left sentence finds the right one
    back: np.ndarray  # (N,) bool: the right sentence finds the left one
    mined: scores.Found | None  # bitext mining over the same sentences; by margin only


class Share(NamedTuple):
    """A fraction, and Wilson's 95% interval of it."""

    value: float
    low: float
    high: float


def side(embedder: SentenceEncoder, sentences: Sequence[str], lang: str) -> Side:
    """Semantic vectors of N sentences of one language.

    Raises BgtError where there is none, for a language that the embedder lacks, and for what aren't finite vectors.
    """
    if not sentences:
        raise DataError(f"No sentences in {lang}; retrieval needs a pair of translations, and more to choose from.")
    if embedder.langs and lang not in embedder.langs:
        raise UsageError(f"This model has no language '{lang}'; it has {', '.join(embedder.langs)}.")
    places: dict[str, int] = {}
    of_line = np.array([places.setdefault(sentence, len(places)) for sentence in sentences])
    first = np.unique(of_line, return_index=True)[1]
    vectors = np.asarray(embedder.embed(list(places), lang=lang))  # (U, D)
    if vectors.ndim != 2 or len(vectors) != len(places):
        raise DataError(
            f"{len(places)} sentences in {lang} gave vectors of shape {vectors.shape}; expected a row each."
        )
    if len(bad := np.flatnonzero(~np.isfinite(vectors).all(1))):
        raise DataError(f"The vector of line {first[bad[0]] + 1} in {lang} holds infinity or no number.")
    return Side(vectors, first, of_line)


def retrieval(left: Side, right: Side, margin: str | None = None, k: int = 4) -> Retrieval:
    """Line n of `left` is the translation of line n of `right`: which find each other?

    By cosine, or by a margin of `mining.margin` ("ratio" or "distance", over k neighbours), which needs FAISS; pairs
    are then mined too, and counted at the threshold that is best for the other half of the known ones. Raises BgtError
    for sides of different lengths or widths, and as `margin.check` does.
    """
    if len(left.of_line) != len(right.of_line):
        raise DataError(f"{len(left.of_line)} and {len(right.of_line)} sentences; expected as many of each language.")
    widths = [one.vectors.shape[1] for one in (left, right)]
    if widths[0] != widths[1]:
        raise DataError(f"Vectors of {widths[0]} and {widths[1]} units can't be compared; embed both with one model.")
    if margin is None:
        found, back, mined = nearest(left.vectors, right.vectors), nearest(right.vectors, left.vectors), None
    else:
        found, back, mined = by_margin(left, right, margin, k)
    return Retrieval(hits(found, left, right), hits(back, right, left), mined)


def hits(found: np.ndarray, asking: Side, held: Side) -> np.ndarray:
    """Whether each line finds its own, (N,) bool; found (U,) is which of `held` each of `asking` is nearest to."""
    return held.first[found][asking.of_line] == np.arange(len(asking.of_line))


def nearest(queries: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """The row of answers (M, D) with the highest cosine to each row of queries (N, D), the first of equals: (N,)."""
    queries, columns = unit(queries), unit(answers).T
    blocks = [queries[start : start + BLOCK] @ columns for start in range(0, len(queries), BLOCK)]
    return np.concatenate([block.argmax(1) for block in blocks])


def by_margin(left: Side, right: Side, margin: str, k: int) -> tuple[np.ndarray, np.ndarray, scores.Found]:
    """What each of `left` finds, (U,), what each of `right` finds, (V,), and how mining both of them does."""
    from bgt_core.mining.margin import mine
    from bgt_core.mining.neighbours import Rows, exact

    rows = [Rows(one.vectors, np.arange(len(one.vectors))) for one in (left, right)]
    plan = exact(*rows)
    forward, backward, pairs = (
        mine(*rows, plan, k=k, margin=margin, retrieval=way) for way in ("forward", "backward", "max")
    )
    known = np.unique(np.stack([left.of_line, right.of_line], 1), axis=0)  # (G, 2)
    correct = scores.among(pairs.left, pairs.right, *known.T)
    odd = int((known[:, 0] % 2).sum())
    mined, _ = scores.held_out(pairs.scores, correct, pairs.left % 2, (len(known) - odd, odd))
    return forward.right[np.argsort(forward.left)], backward.left[np.argsort(backward.right)], mined


def share(right: np.ndarray) -> Share:
    """The share of hits, (N,) bool, with its interval."""
    test = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return Share(float(right.mean()), float(test.low), float(test.high))


def precision_at_1(queries: np.ndarray, answers: np.ndarray) -> float:
    """Share of rows of queries (N, D) whose nearest row of answers (N, D), by cosine, is their own."""
    return float((nearest(queries, answers) == np.arange(len(queries))).mean())
