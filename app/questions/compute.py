"""Find stored questions that repeat a typed one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from app.core.state import BY_DIGEST, Loaded, inference
from bgt_core.neighbours.questions import CARD, Hit, QuestionStore


def opened(loaded: Loaded, folder: Path) -> QuestionStore:
    """Open the store in a folder, once for all sessions; BgtError if another model made it."""
    card = folder / CARD
    return _open(loaded, folder, card.stat().st_mtime_ns if card.is_file() else 0)


@st.cache_resource(max_entries=3, show_spinner="Reading the questions", hash_funcs=BY_DIGEST)
def _open(loaded: Loaded, folder: Path, written_ns: int) -> QuestionStore:
    return QuestionStore.open(folder, loaded.reader)


def nearest(store: QuestionStore, question: str, count: int) -> list[Hit]:
    """The stored questions most like this one, best first."""
    with inference():
        (hits,) = store.query([question], k=count)
    return hits


def table(store: QuestionStore, hits: Sequence[Hit], threshold: float | None) -> pd.DataFrame:
    """One row per question; columns without values in this store are left out."""
    columns: dict[str, list[object]] = {}
    if threshold is not None:
        columns["Duplicate"] = [hit.probability is not None and hit.probability >= threshold for hit in hits]
    columns["Question"] = [hit.question for hit in hits]
    if threshold is not None:
        columns["Probability"] = [hit.probability for hit in hits]
    if store.card.by == "probability":
        columns["W2"] = [hit.w2 for hit in hits]
    else:
        columns["Cosine"] = [hit.cosine for hit in hits]
    return pd.DataFrame(columns)
