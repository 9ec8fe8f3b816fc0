"""Maps of the two latents of the same sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import streamlit as st

from app.core import corpora, exports, interpolation, rows, state
from app.core.address import BOUND, in_ranges, linked_rows
from app.core.latents import geometry, spaces
from app.core.markdown import how_to_read, verbatim
from app.maps import chart, component, compute, selection, settings

STAR, STAR_LANG = "star", "star_lang"  # parameters of the address: a sentence to add, and its language
HELP = """
- A point is a sentence, its symbol the language. All languages are on the map of the **semantic latent**: how
  often a sentence and its translation are neighbours there is measured below. The **language latent** has a map for
  each language.
- **Click a point**: it becomes a star, and its ten nearest sentences get a ring on all maps, in the colour of the
  latent in which they are near. **Draw around points** with the mouse: they are selected on all maps; Shift adds.
- **Drag the star** on either map: the model moves that latent there and generates a new sentence.
- **Map these alone** fits new maps to the selected sentences and their translations; the link keeps them.
- Near on a map means near in the latent only as far as the *trustworthiness* under the maps says: 1 is perfect, 0.5 is
  chance. The lists below the maps use the full latents, not the maps.
- PCA shows the two directions of the largest variance; t-SNE and UMAP keep neighbours together, but distances between
  far groups mean nothing.
"""


def page() -> None:
    loaded = state.model()
    st.title("Two latents")
    st.markdown("Click a point, or draw around several. Ctrl and the mouse wheel zoom.")
    if not loaded.second_latent:
        st.caption("This model has one latent, so there is one map. *Your encoder* splits its vectors into two parts.")
    choice = settings.choose(loaded)
    if choice is None:
        return
    langs = choice.text.langs
    shown = loaded.digest, choice.text
    if st.session_state.setdefault("chosen_of", shown) != shown:  # other sentences: the old selection does not apply
        selection.forget()
        st.session_state["chosen_of"] = shown
    everything = corpora.sentences(choice.text, choice.count)
    corpus = settings.alone(everything)
    count, different = len(corpus) // len(langs), corpus["text"].nunique()
    unit = choice.text.unit
    if count < settings.LEAST or different < settings.LEAST:
        name = verbatim(choice.text.file or "this text")
        st.info(f"A map needs 3 {unit} and 3 different sentences; {name} has {count} and {different}.")
        return
    if len(corpus) < len(everything):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Mapped alone: {count:,} of {len(everything) // len(langs):,} {unit}.")
            st.button("Map all again", on_click=settings.map_alone, args=([],))
    elif count < choice.count:
        st.caption(f"There are {count:,} {unit}; all are shown.")
    elif choice.text.table is not None:
        total = len(choice.text.table)
        st.caption(f"Shown: the first {choice.count:,} of your {total:,} {unit}. *More* raises the number.")
    elif choice.text.file:
        st.caption(f"Shown: the first {choice.count:,} {unit} of {verbatim(choice.text.file.name)}.")
    brought(langs)
    table = pd.concat([corpus, *settings.own_rows(langs)], ignore_index=True)
    restore(table)
    method, fitted = settings.fitted(loaded, table, choice)
    coloured = spaces.coloured(fitted, choice.colour)
    above = st.container()
    ends = list(dict.fromkeys(table["text"]))[:2]
    walk = interpolation.form(loaded, ends, langs) if loaded.second_latent else None
    with above:
        explore(loaded, coloured, method, choice, compute.paths(walk, coloured))
    scores(loaded, coloured, langs)
    how_to_read(HELP)


def brought(langs: Sequence[str]) -> None:
    """Draw the sentence that another page's link brings along as a star."""
    text, lang = st.query_params.get(STAR, ""), st.query_params.get(STAR_LANG, "")
    if not text or lang not in langs:
        return
    del st.query_params[STAR], st.query_params[STAR_LANG]
    for table in settings.own_rows([lang]):
        if there := table.loc[table["text"] == text, "id"].tolist():
            selection.choose(there)
            return
    if settings.add(text, lang):
        limit = f"you can add up to {rows.MAX_OWN} sentences; remove some under *Add sentences*."
        st.warning(f"“{verbatim(text)}” is not drawn: {limit}")


def restore(table: pd.DataFrame) -> None:
    """Restore the selection of the link that opened the page, if it has one."""
    linked = linked_rows()
    if "chosen" in st.session_state and not linked:
        return
    words = st.query_params.get("find", "").strip()
    selection.choose(rows.matching(table, words) if words else in_ranges(linked, table["id"].tolist()))


def explore(
    loaded: state.Loaded,
    fitted: spaces.Spaces,
    method: geometry.Method,
    choice: settings.Choice,
    paths: Mapping[str, np.ndarray],
) -> None:
    """All maps; below them the selection."""
    figures = chart.map_figures(fitted, loaded.second_latent, choice, paths)
    table = fitted.semantic.rows
    drawn = [
        component.Map(
            name,
            figure(hover=False),
            f"Map of the {name} latent: {len(table)} sentences, {method.name}, coloured by "
            f"{rows.colour_title(choice.colour).lower()}. The table below it lists the same sentences.",
        )
        for name, figure in figures.items()
        if name != chart.ALL
    ]
    languages = {lang: rows.language_name(lang) for lang in choice.text.langs}
    component.draw(drawn, fitted.semantic.content, table, languages, f"bgt-{{}}-{loaded.short}")
    selection.inspect(loaded, fitted, method, choice, figures)
    st.caption(compute.caption(method, fitted, loaded.second_latent))
    if choice.text.credit:
        st.caption(choice.text.credit)


def scores(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> None:
    """Scores in the full space: of translations, and of style if the model has a second latent."""
    parts = [translation] * (len(langs) > 1) + [style] * bool(fitted.second)
    if not parts:
        return
    st.subheader("Measured in the full space")
    tables = []
    for column, part in zip(st.columns(2, gap="large"), parts, strict=False):
        with column:
            tables.append(part(loaded, fitted, langs))
    table = pd.concat(tables).reset_index(names="Measure")
    exports.offer(f"bgt-measures-{loaded.short}", table, latex=table.fillna(""), title="Export measures")


def translation(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> pd.DataFrame:
    st.markdown("**Does the nearest sentence translate it?**")
    retrieval = compute.pair_table(loaded, fitted.semantic, *language_pair(langs))
    st.table(
        retrieval,
        border="horizontal",
        alt="Translation retrieval, P@1 both ways, and the mean cosine of translations, beside chance",
    )
    st.caption(
        f"Finds: the share whose nearest sentence is their translation, of up to {spaces.MAX_SCORED:,} of these pairs. "
        "The probe is trained on three fifths of these pairs, a fifth chooses its penalty, and a fifth tests it; "
        "*Probes* and *Your encoder* use other sentences."
    )
    return retrieval


def style(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> pd.DataFrame:
    st.markdown("**Does the nearest sentence share its style?**")
    shared = compute.agreements(loaded, fitted, list(rows.COUNTED))
    st.table(
        shared,
        border="horizontal",
        alt="How often a sentence's nearest has the same closing mark, length, punctuation: each latent, and chance",
    )
    same = "in the same language " if len(langs) > 1 else ""
    st.caption(f"The fraction whose nearest sentence {same}has the same.")
    return shared


def language_pair(langs: Sequence[str]) -> tuple[str, str]:
    """The two languages to compare; the user chooses if there are more."""
    pairs = list(combinations(langs, 2))
    if len(pairs) == 1:
        return pairs[0]

    def title(pair: tuple[str, str]) -> str:
        return " and ".join(map(rows.language_name, pair))

    return st.selectbox("Languages", pairs, format_func=title, key="lang_pair", **BOUND)
