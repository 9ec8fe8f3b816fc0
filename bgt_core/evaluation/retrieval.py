"""Translation retrieval: whose nearest neighbour in the other language is its translation?

    pairs -> `EmbeddedSentences` of each language -> what each sentence finds -> hits, (N,) bool -> their share

A hit is the sentence of the same line, as LASER's error counts it: a copy of it on another line is a miss. Of equally
similar sentences the first line is found, whatever order a machine adds numbers in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.mining import scores
from bgt_core.mining.margin import check, margin_pairs
from bgt_core.mining.neighbours import Rows, exact
from bgt_core.vectors.compare import Similarity, cosine_similarity, nearest

SIMILARITY = "cosine"  # what searches by the encoder's own similarity are called: the cosine, for nearly all


class EmbeddedSentences(NamedTuple):
    """The N sentences of one language, the U different ones embedded once, so that copies don't crowd out others."""

    vectors: np.ndarray  # (U, D)
    first: np.ndarray  # (U,) the line that each is on first
    of_line: np.ndarray  # (N,) which of them a line holds


class Share(NamedTuple):
    """A fraction, and Wilson's 95% interval of it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Retrieval:
    """N pairs searched both ways."""

    by: str  # "cosine", "ratio" or "distance"
    langs: tuple[str, str]
    forward: np.ndarray  # (N,) bool: the left sentence finds the right one
    backward: np.ndarray  # (N,) bool: the right sentence finds the left one
    mined: scores.Counts | None = None  # bitext mining over the same sentences; by margin only

    @property
    def shares(self) -> tuple[Share, Share]:
        """Precision at 1, forward and backward."""
        return share(self.forward), share(self.backward)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it; shares are fractions."""
        left, right = self.langs
        directions = ((left, right, self.forward), (right, left, self.backward))
        counts = self.mined
        return {
            "by": self.by,
            "pairs": len(self.forward),
            "precision_at_1": [
                {"from": source, "to": target, "hits": int(hits.sum()), **share(hits)._asdict()}
                for source, target, hits in directions
            ],
            "mining": counts and {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1},
        }


def retrieve(
    encoder: SentenceEncoder,
    left: Sequence[str],
    right: Sequence[str],
    *,
    langs: Sequence[str],
    margin: str | None = None,
    k: int = 4,
) -> list[Retrieval]:
    """Line n of `left` is the translation of line n of `right`: which find each other?

        by_similarity, by_margin = retrieve(encoder, english, french, langs=("en", "fr"), margin="ratio")

    By the encoder's own similarity; with a `margin` of `mining.margin` ("ratio" or "distance", over `k` neighbours),
    which needs FAISS, by that too: pairs are then also mined, and counted at the threshold that is best for the other
    half of the known ones.

    Raises UsageError for other than two `langs`, for a language that the encoder lacks and an unknown margin, DataError
    for sides of different lengths and for what aren't finite vectors.
    """
    if len(langs) != 2:
        raise UsageError(f"`langs` {','.join(langs)}: expected two languages, as in en,fr.")
    if margin:
        check(k, margin, "max")
    pair = langs[0], langs[1]
    embedded = embed_distinct(encoder, left, pair[0]), embed_distinct(encoder, right, pair[1])
    results = [Retrieval(SIMILARITY, pair, *hits_of(*embedded, encoder.similarity))]
    if margin:
        results.append(by_margin(*embedded, pair, margin, k))
    return results


def embed_distinct(encoder: SentenceEncoder, sentences: Sequence[str], lang: str) -> EmbeddedSentences:
    """Semantic vectors of N sentences of one language.

    Raises UsageError for a language that the encoder lacks, DataError where there is no sentence, and for what aren't
    finite vectors.
    """
    if not sentences:
        raise DataError(f"No sentences in {lang}; retrieval needs a pair of translations, and more to choose from.")
    if encoder.langs and lang not in encoder.langs:
        raise UsageError(f"This model has no language '{lang}'; it has {', '.join(encoder.langs)}.")
    numbers: dict[str, int] = {}
    of_line = np.array([numbers.setdefault(sentence, len(numbers)) for sentence in sentences])
    first = np.unique(of_line, return_index=True)[1]
    vectors = np.asarray(encoder.embed(list(numbers), lang=lang))  # (U, D)
    if vectors.ndim != 2 or len(vectors) != len(numbers):
        raise DataError(
            f"{len(numbers)} sentences in {lang} gave vectors of shape {vectors.shape}; expected a row each."
        )
    if len(bad := np.flatnonzero(~np.isfinite(vectors).all(1))):
        raise DataError(f"The vector of line {first[bad[0]] + 1} in {lang} holds infinity or no number.")
    return EmbeddedSentences(vectors, first, of_line)


def hits_of(
    left: EmbeddedSentences, right: EmbeddedSentences, similarity: Similarity = cosine_similarity
) -> tuple[np.ndarray, np.ndarray]:
    """Which lines find each other, forward and backward, (N,) bool each. DataError as `check_sides` raises it."""
    check_sides(left, right)
    forward, backward = (
        nearest(queries.vectors, answers.vectors, similarity) for queries, answers in ((left, right), (right, left))
    )
    return on_own_line(forward, left, right), on_own_line(backward, right, left)


def by_margin(
    left: EmbeddedSentences, right: EmbeddedSentences, langs: tuple[str, str], margin: str, k: int
) -> Retrieval:
    """The same by a margin over cosines, and how mining both sides does."""
    check_sides(left, right)
    rows = [Rows(side.vectors, np.arange(len(side.vectors))) for side in (left, right)]
    plan = exact(*rows)
    forward, backward, pairs = (
        margin_pairs(rows[0], rows[1], plan, k=k, margin=margin, retrieval=retrieval)
        for retrieval in ("forward", "backward", "max")
    )
    known = np.unique(np.stack([left.of_line, right.of_line], 1), axis=0)  # (G, 2)
    correct = scores.among(pairs.left, pairs.right, *known.T)
    odd = int((known[:, 0] % 2).sum())
    mined, _ = scores.held_out(pairs.scores, correct, pairs.left % 2, (len(known) - odd, odd))
    ahead = on_own_line(forward.right[np.argsort(forward.left)], left, right)
    back = on_own_line(backward.left[np.argsort(backward.right)], right, left)
    return Retrieval(margin, langs, ahead, back, mined)


def check_sides(left: EmbeddedSentences, right: EmbeddedSentences) -> None:
    """DataError for sides of different lengths or widths."""
    if len(left.of_line) != len(right.of_line):
        raise DataError(f"{len(left.of_line)} and {len(right.of_line)} sentences; expected as many of each language.")
    widths = [side.vectors.shape[1] for side in (left, right)]
    if widths[0] != widths[1]:
        raise DataError(f"Vectors of {widths[0]} and {widths[1]} units can't be compared; embed both with one model.")


def on_own_line(rows: np.ndarray, queries: EmbeddedSentences, answers: EmbeddedSentences) -> np.ndarray:
    """Whether each line finds its own, (N,) bool; rows (U,) of `answers` are what each different query finds."""
    return answers.first[rows][queries.of_line] == np.arange(len(queries.of_line))


def share(hits: np.ndarray) -> Share:
    """The share of hits, (N,) bool, with its interval."""
    return Share(float(hits.mean()), *wilson(int(hits.sum()), len(hits)))


def precision_at_1(queries: np.ndarray, answers: np.ndarray, similarity: Similarity = cosine_similarity) -> float:
    """Share of rows of queries (N, D) whose most similar row of answers (N, D) is their own."""
    return float((nearest(queries, answers, similarity) == np.arange(len(queries))).mean())
