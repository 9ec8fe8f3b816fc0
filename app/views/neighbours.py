"""The nearest sentences of one on the maps, or of one that is typed, in each latent."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import rows, spaces, state, uploads
from bgt_core.contracts import SEMANTIC

NEAREST = 10
MAX_OFFERED = 200  # sentences to choose one from


def nearest(loaded: state.Loaded, table: pd.DataFrame, fitted: spaces.Spaces, chosen: Sequence[str]) -> None:
    st.subheader("Nearest sentences")
    offered = list(chosen[:MAX_OFFERED]) or table.index[:MAX_OFFERED].tolist()
    langs = table["lang"].unique().tolist()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        row = st.selectbox(
            "Choose one, or type your own",
            offered,
            format_func=lambda row: table["text"].get(row, row),
            accept_new_options=True,
        )
        typed = row not in table.index
        lang = table["lang"].get(row, langs[0])
        if typed and len(langs) > 1:
            lang = st.segmented_control(
                "Its language", langs, default=lang, required=True, format_func=rows.language_name
            )
    (any_language, only) = (": any language", f": {rows.language_name(lang)} only") if len(langs) > 1 else ("", "")
    sides = {f"{rows.latent_title(SEMANTIC)}{any_language}": (SEMANTIC, fitted.semantic)}
    if lang in fitted.second:
        sides[f"{rows.latent_title(loaded.second_latent)}{only}"] = (loaded.second_latent, fitted.second[lang])
    for column, (title, (latent, space)) in zip(st.columns(len(sides)), sides.items(), strict=True):
        column.markdown(f"**{title}**")
        near = (
            spaces.nearest_to(loaded, row[: uploads.MAX_CHARACTERS], lang, latent, space.rows, space.vectors, NEAREST)
            if typed
            else spaces.nearest(loaded, space, row, NEAREST)
        )
        column.dataframe(
            near if len(langs) > 1 else near.drop(columns="In"),
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"{title}: nearest sentences with their cosines",
        )
