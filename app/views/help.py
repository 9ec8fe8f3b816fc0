"""How to read a page: what its terms and marks mean, for whoever has not read the papers."""

from __future__ import annotations

import streamlit as st


def how_to_read(text: str) -> None:
    """A closed box of Markdown at the end of a page: what is drawn, what each term means, how not to read it."""
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown(text)
