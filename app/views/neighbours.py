"""The nearest sentences of one on the maps, or of one that is typed, in each latent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from app import inspecting, rows, spaces, state, uploads
from app.charts.theme import latent_colour
from bgt_core.contracts import SEMANTIC

NEAREST = 10
MAX_OFFERED = 200  # sentences to choose one from


@dataclass(frozen=True, eq=False)
class Near:
    """A sentence, and the nearest to it in each latent; no sentence: nothing is near."""

    row: str | None  # its id, or what was typed
    lang: str
    tables: Mapping[str, pd.DataFrame]  # latent -> nearest rows with `Cosine`

    def place(self, table: pd.DataFrame) -> int:
        """Which row of a table is the sentence; -1 if none is."""
        return int(next(iter(np.flatnonzero(table["id"] == self.row)), -1))

    def mask(self, table: pd.DataFrame) -> np.ndarray:
        """Which rows of a table are near in any latent, (N,)."""
        return inspecting.among(table, frozenset(row for near in self.tables.values() for row in near["id"]))

    def rings(self, loaded: state.Loaded, table: pd.DataFrame) -> list[tuple[list[int], str]]:
        """For each latent the rows of a table that are near in it, and its colour."""
        place_of = {row: place for place, row in enumerate(table["id"])} if self.tables else {}
        return [
            ([place_of[row] for row in near["id"]], latent_colour(latent, state.theme()))
            for latent, near in self.tables.items()
        ]

    def show(self, langs: Sequence[str]) -> None:
        """A table for each latent."""
        for latent, near in self.tables.items():
            any_language, only = (": any language", f": {rows.language_name(self.lang)} only") * (len(langs) > 1) or (
                "",
                "",
            )
            title = f"{rows.latent_title(latent)}{any_language if latent == SEMANTIC else only}"
            st.markdown(f"**{title}**")
            columns = ["Cosine", "In", "Sentence"] if len(langs) > 1 else ["Cosine", "Sentence"]
            st.dataframe(
                near[columns],
                hide_index=True,
                column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
                alt=f"{title}: nearest sentences with their cosines",
            )


def choose(loaded: state.Loaded, fitted: spaces.Spaces, chosen: Sequence[str]) -> Near:
    """Asks for a sentence, the user's own and the selected ones first, and finds what is near it."""
    table = fitted.semantic.rows.set_index("id")
    own = table.index[table["own"]].tolist()
    offered = list(dict.fromkeys([*own, *chosen, *table.index[:MAX_OFFERED]]))[:MAX_OFFERED]
    focus = st.session_state.get("focus")
    if focus is not None and focus not in offered:
        offered.insert(0, focus)
    st.session_state["nearest_of"] = focus
    row = st.selectbox(
        "Nearest sentences of",
        offered,
        format_func=lambda row: table["text"].get(row, row),
        key="nearest_of",
        placeholder="Click a point, or type one",
        accept_new_options=True,
        on_change=focus_on,
        args=(chosen,),
    )
    if row is None:
        return Near(None, "", {})
    langs = table["lang"].unique().tolist()
    typed = row not in table.index
    lang = table["lang"].get(row, langs[0])
    if typed and len(langs) > 1:
        lang = st.segmented_control("Its language", langs, default=lang, required=True, format_func=rows.language_name)
    sides = {SEMANTIC: fitted.semantic}
    if lang in fitted.second:
        sides[loaded.second_latent] = fitted.second[lang]
    return Near(
        row,
        lang,
        {
            latent: spaces.nearest_to(
                loaded, row[: uploads.MAX_CHARACTERS], lang, latent, space.rows, space.vectors, NEAREST
            )
            if typed
            else spaces.nearest(loaded, space, row, NEAREST)
            for latent, space in sides.items()
        },
    )


def focus_on(chosen: Sequence[str]) -> None:
    """The sentence becomes the selection, unless it is part of it."""
    row = st.session_state["nearest_of"]
    st.session_state["focus"] = row
    if row not in chosen:
        st.session_state["chosen"] = [row] if row else []
