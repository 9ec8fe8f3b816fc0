"""A sentence, and the nearest to it in each latent, beside the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from app.core import markdown, rows, theme
from app.core.markdown import verbatim
from app.maps import compute
from bgt_core.contracts import SEMANTIC


@dataclass(frozen=True, eq=False)
class Near:
    """A sentence, and the nearest to it in each latent; empty if no sentence is chosen."""

    row: str | None  # its id, or the typed text
    lang: str
    tables: Mapping[str, pd.DataFrame]  # latent -> nearest rows with `Cosine`

    def place(self, table: pd.DataFrame) -> int:
        """Which row of a table is the sentence; -1 if none is."""
        return int(next(iter(np.flatnonzero(table["id"] == self.row)), -1))

    def mask(self, table: pd.DataFrame) -> np.ndarray:
        """Which rows of a table are near in any latent, (N,)."""
        return compute.among(table, frozenset(row for near in self.tables.values() for row in near["id"]))

    def rings(self, table: pd.DataFrame) -> list[tuple[list[int], str]]:
        """For each latent the rows of a table that are near in it, and its colour."""
        place_of = {row: place for place, row in enumerate(table["id"])} if self.tables else {}
        return [
            ([place_of[row] for row in near["id"]], theme.latent_colour(latent, theme.current()))
            for latent, near in self.tables.items()
        ]

    def whole(self, table: pd.DataFrame) -> None:
        """The sentence in full, and its translation."""
        for row in table[table["id"] == self.row].itertuples():
            st.markdown(f"**{verbatim(row.text)}**")
            if row.translation:
                st.caption(verbatim(row.translation))

    def show(self, langs: Sequence[str]) -> None:
        """A table for each latent, side by side."""
        if not self.tables:
            return
        keys = " &nbsp; ".join(f"{theme.square(latent, theme.current())} {latent} latent" for latent in self.tables)
        st.html(f"★ is the chosen sentence. Rings mark its nearest in the {keys}.")
        for column, (latent, near) in zip(st.columns(len(self.tables), gap="large"), self.tables.items(), strict=True):
            only = f": {rows.language_name(self.lang)} only"
            where = (": any language" if latent == SEMANTIC else only) * (len(langs) > 1)
            title = f"{rows.latent_title(latent)}{where}"
            column.markdown(f"**{title}**")
            columns = ["Cosine", "In", "Sentence"] if len(langs) > 1 else ["Cosine", "Sentence"]
            with column:
                shown = near[columns].assign(Cosine=near["Cosine"].map("{:z.2f}".format))
                markdown.table(shown, f"{title}: nearest sentences with their cosines")
