"""Vectors of many sentences: one copy for all sessions, filled part by part; the oldest go when memory is short."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

AT_ONCE = 5_000  # sentences at a time; smaller parts have more batch shapes, and oneDNN keeps memory for each
KEPT_BYTES = 400_000_000  # of all kept vectors; the newest are always kept


@dataclass(eq=False)
class Matrix:
    """Vectors (N, D), of which the first `done` rows are computed; a run that is stopped continues from there."""

    vectors: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(show_spinner=False)
def _kept() -> OrderedDict[str, Matrix]:
    """The entries, the newest last."""
    return OrderedDict()


def filled(
    key: str, parts: Sequence[tuple[str, Sequence[str]]], embed: Callable[[Sequence[str], str], np.ndarray]
) -> np.ndarray:
    """The vectors of the sentences of each part, (language, sentences), one part after the other: (N, D), read-only.

    `embed` gives those of up to 5,000 sentences of a language; `key` names whose they are. Shows progress.
    """
    kept = _kept()
    matrix = kept.setdefault(key, Matrix())
    kept.move_to_end(key)
    count, first, bar = sum(len(texts) for _, texts in parts), 0, st.empty()
    for lang, texts in parts:
        for start in range(0, len(texts), AT_ONCE):
            if 0 < matrix.done <= first < count:
                bar.progress(first / count, f"Embedding: {first:,} of {count:,} sentences")
            batch = texts[start : start + AT_ONCE]
            with matrix.lock:
                if matrix.done <= first:
                    add(matrix, embed(batch, lang), count)
            first += len(batch)
    bar.empty()
    while len(kept) > 1 and sum(one.vectors.nbytes for one in list(kept.values())) > KEPT_BYTES:
        kept.popitem(last=False)
    return matrix.vectors


def add(matrix: Matrix, vectors: np.ndarray, count: int) -> None:
    """Put the next rows of `count` in place."""
    if not matrix.done:
        matrix.vectors = np.empty((count, vectors.shape[1]), np.float32)
    matrix.vectors[matrix.done : matrix.done + len(vectors)] = vectors
    matrix.done += len(vectors)
    if matrix.done == count:
        matrix.vectors.setflags(write=False)  # shared by all sessions
