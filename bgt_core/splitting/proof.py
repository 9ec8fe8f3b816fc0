"""What a split does to rows that it was not fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from bgt_core.splitting.moments import HeldOut
from bgt_core.splitting.parts import Split
from bgt_core.vectors import ranks
from bgt_core.vectors.compare import BLOCK, ROUNDING, cosine_similarity

ROWS = 1_000  # maximum number of held-out rows
FOLDS = 5


def scores(split: Split, held_out: Sequence[HeldOut]) -> dict[str, dict[str, Any]]:
    """Measure the vectors as they are, their shared and their private parts.

    Args:
        split: The split.
        held_out: Languages of the columns, and vectors (N, D) for each, of one file or more; the first 1,000 rows of
            each are used.

    Returns:
        For "vectors", "shared" and "private": `found`, the share of sentences whose nearest sentence of the other
        column is of the same row, the mean over both ways and all two columns; `pool`, the same where the sentences of
        all columns are searched; and `language_told`, the accuracy of a linear probe of the language in five folds,
        None where there is one language. A guess finds one of N rows, and tells one of as many languages as there are.
        Of several files, each is the mean.
    """
    measured: dict[str, list[tuple[float, float, float | None]]] = {"vectors": [], "shared": [], "private": []}
    for langs, columns in held_out:
        columns = [column[:ROWS] for column in columns]
        shared, private = zip(
            *(split.parts(column, lang) for column, lang in zip(columns, langs, strict=True)), strict=True
        )
        for kind, of in zip(measured, (columns, shared, private), strict=True):
            measured[kind].append((found(of), found_in_pool(of), language_told(of, langs)))
    names = ("found", "pool", "language_told")
    return {
        kind: {name: mean(of) for name, of in zip(names, zip(*each, strict=True), strict=True)}
        for kind, each in measured.items()
    }


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of those that are not None; None if all are."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def found(columns: Sequence[np.ndarray]) -> float:
    """Share of sentences whose nearest one in another column is of the same row; k that are equally near share it."""
    return float(np.mean([ranks.found(*pair) for pair in permutations(columns, 2)]))


def found_in_pool(columns: Sequence[np.ndarray]) -> float:
    """Share of sentences whose nearest other one, of any column, is of the same row; equally near ones share it."""
    vectors, count = np.concatenate(columns), len(columns[0])
    right = np.zeros(0)
    for start in range(0, len(vectors), BLOCK):
        queries = np.arange(start, min(start + BLOCK, len(vectors)))
        similarity = cosine_similarity(vectors[queries], vectors)
        similarity[np.arange(len(queries)), queries] = -np.inf
        nearest = similarity > similarity.max(1, keepdims=True) - ROUNDING
        same = np.arange(len(vectors)) % count == (queries % count)[:, None]
        right = np.append(right, (nearest & same).sum(1) / nearest.sum(1))
    return float(right.mean())


def verdict(scored: Mapping[str, Mapping[str, float | None]]) -> str:
    """Say in a line what a split does, from `scores`.

    >>> verdict({"vectors": {"pool": 0.155, "language_told": 0.99}, "shared": {"pool": 0.765, "language_told": 0.52}})
    'Before: 16 % find their translation, language told 99 %. After: 76 %, 52 %.'
    """
    before, after = (
        [f"{100 * value:.0f} %" for name in ("pool", "language_told") if (value := scored[part].get(name)) is not None]
        for part in ("vectors", "shared")
    )
    if len(before) == 1:
        return f"Before: {before[0]} find their paraphrase. After: {after[0]}."
    return f"Before: {before[0]} find their translation, language told {before[1]}. After: {', '.join(after)}."


def language_told(columns: Sequence[np.ndarray], langs: Sequence[str]) -> float | None:
    """Accuracy of a linear probe of the language; sentences of one row are in one fold."""
    from bgt_core.vectors.linear_probe import held_out_hits  # a second, which opening a split encoder need not wait

    if len(set(langs)) < 2:
        return None
    count = len(columns[0])
    folds = np.tile(np.arange(count) * FOLDS // count, len(columns))
    return float(held_out_hits(np.concatenate(columns), np.repeat(langs, count), folds).mean())
