"""Rows found by the values of a column: a range of numbers, or categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from app.core import rows

COLUMN = "find_column"  # the key of its select box


def choose(table: pd.DataFrame, changed: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Ask for a column of the table and for values; `changed` is called with the arguments when they change."""
    columns = [name for name in rows.COLOURS if name in table]
    columns += [name for name in table if name.startswith(rows.OWN_COLUMN)]
    column = st.selectbox(
        "Column", columns, format_func=rows.colour_title, key=COLUMN, on_change=changed, args=arguments
    )
    present = table[column].dropna()
    if pd.api.types.is_numeric_dtype(present) and present.nunique() > 1:
        ends = present.min().item(), present.max().item()
        st.slider("From and to", *ends, ends, key=of(column), on_change=changed, args=arguments)
    else:
        names = sorted(present.astype(str).unique())
        st.multiselect("Values", names, key=of(column), on_change=changed, args=arguments)


def matching(table: pd.DataFrame) -> list[str]:
    """The ids of the rows with the values that were chosen; none before any were."""
    column = st.session_state.get(COLUMN)
    chosen = st.session_state.get(of(column))
    if not chosen:
        return []
    in_range = isinstance(chosen, tuple)
    has_them = table[column].between(*chosen) if in_range else table[column].astype(str).isin(chosen)
    return table.loc[has_them.to_numpy(), "id"].tolist()


def of(column: str | None) -> str:
    """The key of the control for a column's values."""
    return f"values of {column}"
