"""What each word of two sentences adds to their similarity, by any number of models and latents."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten

import pandas as pd
import streamlit as st

from app.core.state import Loaded
from bgt_core.errors import UsageError
from bgt_core.evaluation.systems import word_effects

LEAST = 0.005  # effect that is not 0 in two decimals
LONGEST = 120  # characters of a sentence above its words


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


def show(systems: Mapping[str, tuple[Loaded, str]], left: str, right: str, langs: tuple[str, str]) -> None:
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
        column.dataframe(
            part, hide_index=True, alt=f"Words of “{text}” and what each adds to the similarity, by each column",
            column_config={title: st.column_config.NumberColumn(format="%+.2f") for title in part.columns[1:]},
        )  # fmt: skip
    st.caption(
        "Each word and mark is left out in turn. Above 0, it brings the sentences together: without it the pair is "
        "less similar by that much. Below 0, it drives them apart."
    )
