"""Maps of both latents of the same sentences."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.core import corpora, rows, state, writing
from app.core.address import in_ranges, linked_rows
from app.core.latents import spaces
from app.core.markdown import verbatim
from app.maps import component, compute, selection, settings

STAR, STAR_LANG = "star", "star_lang"  # parameters of the address: a sentence to add, and its language


def page(loaded: state.Loaded) -> None:
    if not loaded.second_latent:
        st.caption("This model has one latent, so there is one map. *Your encoder* splits its vectors into two parts.")
    choice = settings.choose(loaded)
    corpus = corpus_of(loaded, choice) if choice else None
    if choice is None or corpus is None:
        return
    langs = choice.text.langs
    brought(langs)
    table = pd.concat([corpus, *settings.own_rows(langs)], ignore_index=True)
    restore(table)
    method, fitted = settings.fitted(loaded, table, choice)
    fitted = spaces.coloured(fitted, choice.colour)
    above = st.container()
    ends = list(dict.fromkeys(table["text"]))[:2]
    walk = writing.form(loaded, ends, langs) if loaded.second_latent else None
    with above:
        figures = compute.map_figures(
            fitted, loaded.second_latent, choice.colour, langs, compute.paths(walk, fitted), choice.panels, choice.lines
        )
        colour, rows_of = rows.colour_title(choice.colour).lower(), fitted.semantic.rows
        alt = (
            f"latent: {len(rows_of)} sentences, {method.name}, coloured by {colour}. The table below it lists the same"
        )
        drawn = {
            name: (figure(hover=False), f"Map of the {name} {alt} sentences.")
            for name, figure in figures.items()
            if name != compute.ALL
        }
        names = {lang: rows.language_name(lang) for lang in langs}
        component.draw(drawn, fitted.semantic.content, rows_of, names, f"bgt-{{}}-{loaded.short}")
        selection.inspect(selection.Shown(loaded, fitted, method, langs, figures[compute.ALL]))
        st.caption(compute.caption(method, fitted, loaded.second_latent))
        if choice.text.credit:
            st.caption(choice.text.credit)


def corpus_of(loaded: state.Loaded, choice: settings.Choice) -> pd.DataFrame | None:
    """Return the sentences to map, and show their number; if they are too few, show a message and return None."""
    shown = loaded.digest, choice.text
    if st.session_state.setdefault("chosen_of", shown) != shown:  # the old selection does not apply to other sentences
        selection.forget()
        st.session_state["chosen_of"] = shown
    everything = corpora.sentences(choice.text, choice.count)
    corpus = settings.alone(everything)
    langs, unit = choice.text.langs, choice.text.unit
    count, different = len(corpus) // len(langs), corpus["text"].nunique()
    if count < settings.LEAST or different < settings.LEAST:
        name = verbatim(choice.text.file or "this text")
        st.info(f"A map needs 3 {unit} and 3 different sentences; {name} has {count} and {different}.")
        return None
    if len(corpus) < len(everything):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Mapped alone: {count:,} of {len(everything) // len(langs):,} {unit}.")
            st.button("Map all again", on_click=settings.map_alone, args=([],))
    elif count < choice.count:
        st.caption(f"There are {count:,} {unit}; all are shown.")
    elif choice.text.file or choice.text.table is not None:
        of = verbatim(choice.text.file.name) if choice.text.file else f"your {len(choice.text.table):,}"
        st.caption(f"Shown: the first {choice.count:,} {unit} of {of}. *More* raises the number.")
    return corpus


def brought(langs: Sequence[str]) -> None:
    """Draw the sentence in a link from another page as a star."""
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
    """Restore the selection in the link that opened the page."""
    linked = linked_rows()
    if "chosen" not in st.session_state or linked:
        words = st.query_params.get("find", "").strip()
        selection.choose(rows.matching(table, words) if words else in_ranges(linked, table["id"].tolist()))
