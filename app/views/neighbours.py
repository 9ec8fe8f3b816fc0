"""The nearest sentences of one on the maps, in each latent."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import rows, spaces, state

NEAREST = 10
MAX_OFFERED = 200  # sentences to choose one from


def nearest(loaded: state.Loaded, table: pd.DataFrame, fitted: spaces.Spaces, chosen: Sequence[str]) -> None:
    st.subheader("Nearest sentences")
    offered = list(chosen[:MAX_OFFERED]) or table.index[:MAX_OFFERED].tolist()
    row = st.selectbox("Of", offered, format_func=table["text"].get, label_visibility="collapsed")
    lang = table.loc[row, "lang"]
    sides = {"Semantic latent: any language": fitted.semantic}
    if lang in fitted.language:
        sides[f"Language latent: {rows.language_name(lang)} only"] = fitted.language[lang]
    for column, (title, space) in zip(st.columns(len(sides)), sides.items(), strict=True):
        column.markdown(f"**{title}**")
        column.dataframe(
            spaces.nearest(loaded, space, row, NEAREST),
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"{title}: nearest sentences with their cosines",
        )
