"""Pairs of sentences: scores of several systems on them with intervals, and what each word adds to a similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import shorten
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core.markdown import frame
from app.core.state import Loaded
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, pearson
from bgt_core.evaluation.comparison import Result, Statistic, compare
from bgt_core.evaluation.systems import word_effects

LEAST = 0.005  # effect that is not 0 in two decimals
LONGEST = 120  # characters of a sentence above its words


class ItemsKey(NamedTuple):
    """A single score."""

    score: str
    items: int


def compared(
    systems: Mapping[str, np.ndarray], score: Callable[[np.ndarray, np.ndarray], np.ndarray], name: str
) -> Result:
    """A score of each system's N numbers, with intervals and differences: weights (B, N), systems (S, N) -> (B, S)."""
    numbers = np.stack([np.asarray(row, float) for row in systems.values()])
    items = numbers.shape[1]
    return compare(
        Statistic(
            systems=list(systems),
            scores=lambda weights: {ItemsKey(name, items): score(weights[0], numbers)},
            samples=[ItemSample(items)],
        )
    )


def correlations(similarities: Mapping[str, np.ndarray], gold: np.ndarray) -> Result:
    """Pearson's r x 100 with people's scores; DataError for fewer than 3 pairs, or for scores that are all the same."""
    if len(gold) < 3 or np.ptp(gold) == 0:
        raise DataError(f"{len(gold)} pairs with {len(set(gold))} different scores; give 3 pairs and 2 scores or more.")
    return compared(similarities, lambda weights, systems: 100 * pearson(weights, systems, gold), "Pearson x 100")


def shares(hits: Mapping[str, np.ndarray]) -> Result:
    """The mean of each system's N numbers, in percent."""
    return compared(
        hits, lambda weights, systems: 100 * (weights @ systems.T) / weights.sum(1, keepdims=True), "share, %"
    )


def measured(systems: Mapping[str, tuple[Loaded, str]], left: str, right: str, langs: tuple[str, str]) -> pd.DataFrame:
    """Leave each word out in turn: columns side, Word, and one for each title of `systems`, a model and its latent."""
    of_systems = {
        title: word_effects({title: model.encoder}, left, right, langs, latent)
        for title, (model, latent) in systems.items()
    }
    words = next(iter(of_systems.values()))
    places = {"side": [each.side for each in words], "Word": [each.word for each in words]}
    numbers = {title: [each.effects[0] for each in effects] for title, effects in of_systems.items()}
    return pd.DataFrame(places | numbers)


def show_words(systems: Mapping[str, tuple[Loaded, str]], left: str, right: str, langs: tuple[str, str]) -> None:
    """Show the words of both sentences side by side, and what each adds by each system."""
    st.subheader("What each word adds", anchor=False)
    try:
        table = measured(systems, left, right, langs)
    except UsageError as error:  # too many words
        st.caption(str(error))
        return
    if table.empty:
        st.caption("Neither sentence has two words.")
        return
    for side, (column, text) in enumerate(zip(st.columns(2), (left, right), strict=True)):
        part = table.loc[table["side"] == side].drop(columns="side")
        part[[*systems]] = part[[*systems]].where(lambda effects: effects.abs() >= LEAST, 0.0)  # no -0.00
        column.text(shorten(text, LONGEST, placeholder="…"))
        with column:
            alt = f"Words of “{text}” and what each adds to the similarity, by each column"
            frame(part, alt, dict.fromkeys(part.columns[1:], "%+.2f"))
    st.caption(
        "Each word and mark is left out in turn. Above 0, it brings the sentences together: without it the pair is "
        "less similar by that much. Below 0, it drives them apart."
    )
