"""Compare vectors by cosine, and find nearest neighbours; similarities that differ only by rounding count as equal."""

from collections.abc import Callable

import numpy as np

from bgt_core.errors import UsageError
from bgt_core.vectors.convert import matrix

BLOCK = 1_024  # number of queries that are compared with all answers at once

# similarities are rounded to this many decimals, because float32 rounding errors reach 2e-7 and depend on the batch
DECIMALS = 6
ROUNDING = 10.0**-DECIMALS  # similarities that differ by less than this count as equal

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (N, D), (M, D) -> (N, M)


def binary_scaled(vectors: np.ndarray, axis: int | None = -1) -> np.ndarray:
    """Scale each row (..., D) by a power of 2, so that its largest magnitude is from 0.5 to 1, in float32 or float64.

    Squares then neither overflow nor underflow, and no digit changes. With axis=None, all rows get the same factor.
    """
    vectors = vectors.astype(np.result_type(vectors, np.float32), copy=False)
    exponents = np.frexp(np.abs(vectors).max(axis=axis, keepdims=True, initial=0))[1]
    return np.ldexp(vectors, -exponents)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows (N, D) to length 1; a zero row stays zero."""
    scaled = binary_scaled(vectors)
    scaled /= np.maximum(np.linalg.norm(scaled, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    return scaled


def sides(left: object, right: object) -> tuple[np.ndarray, np.ndarray]:
    """Convert `left` and `right` to arrays, each (N, D) or a single vector (D,); UsageError if the widths differ."""
    shapes = ("N", "D"), ("D",)
    left, right = (matrix(side, name, *shapes, dtype=None) for side, name in ((left, "left"), (right, "right")))
    if left.shape[-1] != right.shape[-1]:
        text = f"has vectors of {left.shape[-1]} units, right of {right.shape[-1]}; expected those of one encoder."
        raise UsageError(text, parameter="left")
    return left, right


def paired(left: object, right: object) -> tuple[np.ndarray, np.ndarray]:
    """Convert `left` and `right`, whose rows are compared in pairs, to arrays (N, D); UsageError if shapes differ."""
    left, right = sides(left, right)
    if left.shape != right.shape:
        text = f"has shape {left.shape}, right {right.shape}; expected the same number of vectors."
        raise UsageError(text, parameter="left")
    return left, right


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of row i of left (N, D) and row i of right (N, D), 0 for a zero vector: (N,).

    Raises DataError if an argument does not consist of numbers, UsageError if the shapes differ.
    """
    left, right = paired(left, right)
    return (unit(left) * unit(right)).sum(-1)


def cosine_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of left (N, D) with each row of right (M, D), 0 for a zero vector: (N, M).

    Raises DataError if an argument does not consist of numbers, UsageError if the widths differ.
    """
    left, right = sides(left, right)
    return unit(left) @ unit(right).T


def nearest(queries: np.ndarray, answers: np.ndarray, similarity: Similarity = cosine_similarity) -> np.ndarray:
    """Return the index of the answer (M, D) most similar to each query (N, D), or of the first if several tie: (N,)."""
    first = [np.zeros(0, dtype=np.intp)]
    for start in range(0, len(queries), BLOCK):
        block = similarity(queries[start : start + BLOCK], answers)
        first.append((block > block.max(1, keepdims=True) - ROUNDING).argmax(1))
    return np.concatenate(first)


class ComparesByCosine:
    """The base class of encoders whose vectors are compared by cosine."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""
        return cosine_similarity(left, right)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, D) with row i of right (N, D): (N,)."""
        return cosines(left, right)


def rounded(similarities: np.ndarray) -> np.ndarray:
    """Round similarities to six decimals, so that equal ones tie when they are ranked or compared with a threshold.

    Rounding alone would separate close values such as 0.1234564999 and 0.1234565001. So the sorted values are first
    divided into runs, in which neighbouring values differ by less than a millionth, and every value becomes the lowest
    value of its run. A run wider than a millionth is cut every millionth, so that values in a dense range keep their
    order. Takes (N,), returns (N,) float64.
    """
    values, place = np.unique(np.asarray(similarities, np.float64), return_inverse=True)  # ascending
    first = np.diff(values, prepend=-np.inf) >= ROUNDING  # marks the first value of each run
    lowest = values[first][first.cumsum() - 1]
    steps = np.floor((values - lowest) / ROUNDING + 1e-3)  # + 1e-3, so that values already rounded do not change
    return (lowest + ROUNDING * steps).round(DECIMALS)[place]


def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compare N pairs of similarities, (N,) each: return 1 if the first is higher, 0 if lower, 0.5 for a tie, (N,)."""
    gains = np.asarray(first, np.float64) - second
    return np.where(np.abs(gains) < ROUNDING, 0.5, gains > 0)


def hits(similarity: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return 1 for each query whose most similar answer is the correct one, else 0; 1/k if k answers tie: (N,).

    `similarity` (N, M) compares queries with answers; `own` (N,) is the column of each query's correct answer.
    """
    first = similarity > similarity.max(1, keepdims=True) - ROUNDING
    return first[np.arange(len(own)), own] / first.sum(1)


def found(
    queries: np.ndarray, answers: np.ndarray, own: np.ndarray | None = None, similarity: Similarity = cosine_similarity
) -> np.ndarray:
    """Return the `hits` of queries (N, D) among answers (M, D); by default, answer n is correct for query n."""
    own = np.arange(len(queries)) if own is None else own
    blocks = [slice(start, start + BLOCK) for start in range(0, len(queries), BLOCK)]
    return np.concatenate([np.zeros(0), *(hits(similarity(queries[rows], answers), own[rows]) for rows in blocks)])
