"""Split the vectors of any encoder, prove the split, and use it on every page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.core import controls, rows, state
from app.core.address import BOUND
from app.core.markdown import how_to_read, problem, verbatim
from app.core.state import Loaded
from app.core.uploads import dialog
from app.split import compute
from bgt_core.errors import BgtError

HELP = """
- **Shared part:** what sentences of one meaning have in common in this encoder's vectors. **Private part:** the rest,
  such as the language. Together they give the vector back exactly.
- **bgt:** the linear form of this toolkit's model. **neural:** the same with a trained hidden layer. Both need about
  twice as many pairs as a vector has units. **centring, shift, leace, subspace** only take out what tells the language.
- All numbers are of pairs that were held out: one in ten, at most 1,000.
- A good shared part finds translations and does not tell the language; a good private part does the opposite.
"""


def page() -> None:
    st.title("Split an encoder")
    st.markdown(
        "Translations share their meaning. From pairs of them, split the vectors of any encoder into what they share "
        "and what each language adds."
    )
    another()
    loaded = state.model()
    texts = compute.texts(loaded.langs)
    if st.session_state.get("data") not in texts:  # another page showed a text without pairs
        st.session_state.pop("data", None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Pairs", list(texts), key="data", width=340, **BOUND) if texts else None
        dialog.button()
    if name is None:
        st.info(f"No pairs of sentences in {', '.join(map(rows.language_name, loaded.langs))}. Upload some.")
        return
    columns, langs = compute.columns_of(texts[name])
    width = loaded.encoder.embed(columns[0][:1], lang=langs[0]).shape[1]
    possible = compute.methods(len(columns[0]), width, langs)
    if not possible:
        st.info(f"{len(columns[0]):,} pairs of one language are too few for vectors of {width} units; upload more.")
        return
    method = controls.choice("Method", possible, "method")
    st.caption(f"{len(columns[0]):,} pairs; vectors of {width:,} units by {verbatim(loaded.title)}.")
    if st.button("Split", type="primary", icon=":material/call_split:"):
        bar = st.progress(0.0, "Embedding sentences")

        def shown(done: int, of: int | None) -> None:
            bar.progress(done / (of or done), f"{done:,} of {of or done:,} pairs embedded")

        try:
            with st.spinner("Splitting and measuring"):
                st.session_state["split"] = compute.make(loaded, texts[name], method, shown)
        except BgtError as error:
            problem(error)
        bar.empty()
    if made := st.session_state.get("split"):
        result(made)
    how_to_read(HELP)


def another() -> None:
    """Open an encoder that the app was not started with."""
    with st.expander("Open another encoder", icon=":material/folder_open:"):
        name = st.text_input("Encoder", placeholder="sentence-transformers:NAME or FOLDER", key="split_open")
        st.caption(f"It begins with {', '.join(f'`{kind}`' for kind in compute.KINDS)}, and stays on this machine.")
        if st.button("Open", disabled=not name.strip()):
            try:
                add(compute.opened(name.strip()))
            except BgtError as error:
                problem(error)


def add(loaded: Loaded) -> None:
    """From now on it is one of the models at the side, and chosen."""
    st.session_state["own_models"] = {**state.own(), loaded.title: loaded}
    st.session_state["next_model"] = loaded.title
    st.rerun()


def result(made: compute.Made) -> None:
    """The proof, and what to do with the split."""
    with st.container(horizontal=True):
        if st.button("Use it on every page", type="primary", icon=":material/check:"):
            add(made.loaded)
        st.download_button(
            "Download it", compute.archive(made), "split.zip", icon=":material/download:",
            help="The folder that --model split:FOLDER opens",
        )  # fmt: skip
    for title, (table, note) in made.report.tables.items():
        st.subheader(verbatim(title))
        st.dataframe(pd.DataFrame(table.lines(), columns=table.columns), hide_index=True, alt=title)
        if note:
            st.caption(verbatim(note))
