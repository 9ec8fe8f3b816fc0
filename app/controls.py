"""What a user sets on the maps: which sentences, which projection, sentences of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from app import geometry, options, rows, spaces, state, uploads
from app.options import Corpus
from bgt_core.errors import BgtError

COUNTS = [100, 300, 1_000, 5_000, 25_000]
SHOWN = ["Both", "Semantic", "Language"]
FITTED = {  # methods that wait for a button: most pairs, so that they take no minutes; what their number is called
    "UMAP": (5_000, "Neighbours", 15),
    "t-SNE": (1_000, "Perplexity", 30),
}


@dataclass(frozen=True)
class Choice:
    """What the controls above the maps say."""

    corpus: Corpus
    colour: str  # a key of rows.COLOURS
    pairs: int
    method: str
    shown: str  # which maps
    lines: bool
    drawn: bool


def corpus(langs: Sequence[str]) -> Corpus | None:
    """Which translations to look at; those that the model reads. None, and a word about it, where there are none."""
    known = {name: data for name, data in options.read().data.items() if set(data.langs) <= set(langs)}
    if len(langs) < 2:
        st.info(f"The maps show translations, and this model reads {rows.name(langs[0])} alone.", icon=":material/map:")
        return None
    if not known:
        st.info(
            f"No sentences for this model: it reads {', '.join(map(rows.name, langs))}. Start the app with a file of "
            "translations, a column a language:",
            icon=":material/table_rows:",
        )
        st.code(f"streamlit run app/main.py -- --data {','.join(langs[:2])}=pairs.tsv", language="sh")
        return None
    name = next(iter(known))
    if len(known) > 1:
        name = st.selectbox("Sentences", list(known), key="data", bind="query-params", width=240)
    return known[name]


def choose(langs: Sequence[str], two: bool) -> Choice | None:
    """The row of controls, for a model of `two` kinds of latents or one; all but the user's sentences live in the
    address, for a link to keep."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        data = corpus(langs)
        if data is None:
            return None
        bound = {"bind": "query-params"}
        colour = st.selectbox(
            "Colour", list(rows.COLOURS), format_func=rows.COLOURS.get, key="colour", width=180, **bound
        )
        asked = st.query_params.get("pairs", "").replace(",", "")
        if asked.isdecimal() and int(asked) > COUNTS[-1]:  # a link, typed by hand
            st.session_state["pairs"] = COUNTS[-1]
            st.session_state["too_many"] = int(asked)
        pairs = st.selectbox("Translation pairs", COUNTS, 1, format_func="{:,}".format, key="pairs", width=140, **bound)
        shown = SHOWN[1]
        if two:
            shown = st.segmented_control("Maps", SHOWN, default=SHOWN[0], required=True, key="maps", **bound)
        kind = st.segmented_control("Method", ["PCA", *FITTED], default="PCA", required=True, key="map", **bound)
        with st.popover("More", icon=":material/tune:"):
            lines = st.toggle("Join translations", True, key="lines", **bound)
            drawn = st.toggle(
                "Draw sharply up to 20,000 points",
                key="sharp",
                help="Past 5,000 points a map is painted by the graphics card (WebGL); drawn, it can be saved as true "
                "SVG, and needs no WebGL, but it answers slowly.",
                **bound,
            )
        with st.popover("Add sentences", icon=":material/add:"):
            add(data.langs)
    if (over := st.session_state.get("too_many")) and pairs == COUNTS[-1]:
        st.caption(f"The link asks for {over:,} pairs; a map takes up to {pairs:,}.")
    return Choice(data, colour, pairs, kind, shown, lines, drawn)


def add(langs: Sequence[str]) -> None:
    """The user's own sentences, drawn as stars."""
    with st.form("add", border=False, clear_on_submit=True):
        lines = st.text_area(f"Your sentences, one a line, up to {rows.MAX_OWN}", height=140)
        file = st.file_uploader("Or a file, a sentence a line", uploads.KINDS, max_upload_size=5)
        lang = st.segmented_control("Their language", langs, default=langs[0], required=True, format_func=rows.name)
        asked = st.form_submit_button("Draw as stars", type="primary", shortcut="ctrl+enter")
    own = st.session_state.setdefault("own", [])
    if asked:
        try:
            given = uploads.sentences(file.name, file.getvalue()) if file else []
        except BgtError as error:
            st.error(str(error))
            return
        more, over = rows.typed("\n".join([lines, *given]), lang, sum(map(len, own)))
        own += [more] if len(more) else []
        if over:
            st.warning(f"{over} lines are over the limit of {rows.MAX_OWN} and were left out.")
    if own and st.button(f"Remove all {sum(map(len, own))}"):
        own.clear()
        st.rerun()


def own_rows(langs: Sequence[str]) -> list[pd.DataFrame]:
    """The user's sentences in these languages."""
    return [table for table in st.session_state.get("own", []) if table["lang"].iloc[0] in langs]


def maps(
    loaded: state.Loaded, table: pd.DataFrame, choice: Choice
) -> tuple[geometry.Method, spaces.Space, dict[str, spaces.Space]]:
    """The method, the semantic space, each language's own; UMAP and t-SNE once they were asked for, until then PCA."""
    pca = geometry.Method()
    if choice.method == pca.name:
        return pca, *spaces.spaces(loaded, table, pca)
    most, number, usual = FITTED[choice.method]
    if choice.pairs > most:
        st.caption(f"Shown: PCA. {choice.method} takes up to {most:,} pairs.")
        return pca, *spaces.spaces(loaded, table, pca)
    with st.form("fitted", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        neighbours = st.slider(number, 5, 50, usual, key=f"near_{choice.method}", bind="query-params", width=220)
        seed = st.number_input("Seed", 0, 9999, 0, key="map_seed", bind="query-params", width=120)
        asked = st.form_submit_button(f"Compute {choice.method}", type="primary")
    method = geometry.Method(choice.method, neighbours, seed)
    if asked:
        with st.status("Computing the maps; the first time takes about half a minute") as box:
            found = spaces.spaces(loaded, table, method)
            box.update(label=f"{method.name} is ready", state="complete")
        st.session_state["fitted_of"] = loaded.digest, choice.corpus, choice.pairs, method
        return method, *found
    if st.session_state.get("fitted_of") == (loaded.digest, choice.corpus, choice.pairs, method):
        return method, *spaces.spaces(loaded, table, method)
    st.caption("Shown until you press the button: PCA.")
    return pca, *spaces.spaces(loaded, table, pca)
