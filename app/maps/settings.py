"""The controls of the maps: sentences, projection, the user's own sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import controls, corpora, rows, state, uploads
from app.core.address import BOUND, MAX_ROWS, as_ranges, in_ranges
from app.core.latents import geometry, probe_axes, spaces
from app.core.latents.chart import DENSITY, TRANSLATIONS
from app.core.startup import ParallelText
from app.maps.compute import BOTH
from bgt_core.contracts import SEMANTIC

ALONE = "alone"  # the parameter with the sentences that are mapped alone
LEAST = 3  # minimum number of a text's rows for a map
QUICK = 200  # sentences at most for t-SNE without a button: it takes seconds; UMAP must be compiled first
PROJECTIONS = {  # methods with a button: translations at most, to stay below a minute; their number's name, default
    "UMAP": (5_000, "Neighbours", 15),
    "t-SNE": (1_000, "Perplexity", 30),
}
METRIC = (
    "What is near on the map: vectors that point the same way (cosine), or whose lengths are alike as well "
    "(Euclidean). Lists of neighbours always compare as the model does."
)


@dataclass(frozen=True)
class Choice:
    """The settings chosen above the maps."""

    text: ParallelText
    colour: str  # a key of rows.COLOURS, or a column of the user
    count: int  # maximum number of rows of the text
    method: geometry.Method
    panels: str  # both, or a latent's name, capitalised
    lines: list[str]  # for `latent_map`
    compute: DeltaGenerator  # container of a button, at the end of the row


def choose(loaded: state.Loaded) -> Choice | None:
    """Show the row of controls; the address keeps all settings, but not the user's sentences.

    The default is t-SNE if the model ships with that map of these sentences, else PCA.
    """
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom"):
        text = controls.choose_text(loaded.langs)
        if text is None:
            return None
        translated = len(text.langs) > 1
        colour_place, method_place = st.container(width=180), st.container(width=130)
        with st.popover("More"):
            title = "Translation pairs" if translated else "Sentences at most"
            count = controls.count(title, controls.COUNTS, "pairs", 1, 140)
            table = corpora.sentences(text, count)
            colours = [*rows.colours(text.langs), *(name for name in table if name.startswith(rows.OWN_COLUMN))]
            colour = colour_place.selectbox("Colour", colours, format_func=rows.colour_title, key="colour", **BOUND)
            axes = probe_axes.offered(text.langs)
            methods = ["PCA", *PROJECTIONS, *[probe_axes.NAME] * (len(axes) > 1)]
            usual = geometry.Method("t-SNE", PROJECTIONS["t-SNE"][2])
            opens_on = methods.index("t-SNE") if spaces.stored(loaded, table, usual) else 0
            method = method_place.selectbox("Method", methods, opens_on, key="map", **BOUND)
            lines = [TRANSLATIONS] * (translated and st.toggle("Join translations", True, key="lines", **BOUND))
            lines += [DENSITY] * st.toggle("Contours of density", key="dense", **BOUND)
            projection = choose_projection(method, axes)
        with st.popover("Add sentences"):
            add_sentences(text.langs)
        panels = SEMANTIC.capitalize()
        if loaded.second_latent:
            panels = controls.choice("Maps", [BOTH, panels, loaded.second_latent.capitalize()], "maps")
        compute = st.container(width="content")
    return Choice(text, colour, count, projection, panels, lines, compute)


def choose_projection(name: str, axes: Sequence[str]) -> geometry.Method:
    """Ask for the axes of probes, or the metric and, if the method uses them, the number of neighbours and the seed."""
    if name == probe_axes.NAME:
        across = st.selectbox("To the right", axes, key="axis_x", **BOUND)
        upwards = st.selectbox("Upwards", [axis for axis in axes if axis != across], key="axis_y", **BOUND)
        return geometry.Method(name, axes=(across, upwards))
    metric = controls.choice("Metric", list(geometry.SCALED), "metric", help=METRIC)
    if name not in PROJECTIONS:
        return geometry.Method(name, metric=metric)
    _, number, default = PROJECTIONS[name]
    neighbours = st.slider(number, 5, 50, default, key=f"near_{name}", **BOUND)
    seed = st.number_input("Seed", 0, 9999, 0, key="map_seed", **BOUND)
    return geometry.Method(name, neighbours, seed, metric=metric)


def add_sentences(langs: Sequence[str]) -> None:
    """Show the form for the user's own sentences, which are drawn as stars."""
    with st.form("add", border=False, clear_on_submit=True):
        lines = st.text_area(f"Your sentences, one per line, up to {rows.MAX_OWN}", height=140)
        lang = st.segmented_control(
            "Their language", langs, default=langs[0], required=True, format_func=rows.language_name
        )
        submitted = st.form_submit_button("Draw as stars", type="primary", shortcut="ctrl+enter")
    st.caption(f"For more, or for a file: *Upload*, up to {uploads.MAX_ROWS:,} rows.")
    if submitted and (left_out := add(lines, lang)):
        st.warning(f"{left_out} lines are over the limit of {rows.MAX_OWN} and were left out.")
    if count := sum(map(len, corpora.of_session().typed)):
        st.button(f"Remove your {count} sentence{'s' * (count > 1)}", on_click=corpora.change, kwargs={"typed": ()})


def add(lines: str, lang: str) -> int:
    """Add the user's sentences as stars, and select them; return the number of lines over the limit."""
    own = corpora.of_session().typed
    table, left_out = rows.typed(lines, lang, sum(map(len, own)))
    if len(table):
        corpora.change(typed=(*own, table))
    st.session_state.update(chosen=table["id"].tolist(), focus=next(iter(table["id"]), None))
    return left_out


def own_rows(langs: Sequence[str]) -> list[pd.DataFrame]:
    """Return the user's sentences in these languages."""
    return [table for table in corpora.of_session().typed if table["lang"].iloc[0] in langs]


def alone(corpus: pd.DataFrame) -> pd.DataFrame:
    """Return the sentences to map alone, with their translations; all sentences if they are fewer than three rows."""
    if ALONE not in st.session_state:
        st.session_state[ALONE] = in_ranges(st.query_params.get(ALONE, ""), corpus["id"].tolist())
    pairs = corpus.loc[corpus["id"].isin(st.session_state[ALONE]), "pair"].unique()
    return corpus[corpus["pair"].isin(pairs)] if len(pairs) >= LEAST else corpus


def map_alone(ids: Sequence[str]) -> None:
    """Map these sentences alone; an empty list maps all again. The address keeps them if they fit."""
    st.session_state[ALONE] = list(ids)
    text = as_ranges(ids)
    if text and len(text) <= MAX_ROWS:
        st.query_params[ALONE] = text
    elif ALONE in st.query_params:
        del st.query_params[ALONE]


def fitted(loaded: state.Loaded, table: pd.DataFrame, choice: Choice) -> tuple[geometry.Method, spaces.Spaces]:
    """Return the method and the fitted spaces. UMAP and t-SNE become PCA unless stored, fast or requested."""
    method, pca = choice.method, geometry.Method(metric=choice.method.metric)
    if method.name not in PROJECTIONS:
        return method, spaces.spaces(loaded, table, method)
    most = PROJECTIONS[method.name][0]
    if choice.count > most:
        choice.compute.caption(f"Shown: PCA. {method.name} takes up to {most:,} {choice.text.unit}.")
        return pca, spaces.spaces(loaded, table, pca)
    request = loaded.digest, choice.text, choice.count, method
    quick = method.name == "t-SNE" and len(table) <= QUICK
    if st.session_state.get("fitted_of") != request and not quick and not spaces.stored(loaded, table, method):
        if not choice.compute.button(f"Compute {method.name}", type="primary"):
            st.caption(f"Drawn now: PCA. {method.name} of these sentences must be computed first: press the button.")
            return pca, spaces.spaces(loaded, table, pca)
        st.session_state["fitted_of"] = request
    with st.spinner(f"Computing the maps by {method.name}", show_time=True):
        return method, spaces.spaces(loaded, table, method)
