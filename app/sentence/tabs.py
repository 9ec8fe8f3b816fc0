"""The tabs of the first page, of which one is computed at a time, and the links to other pages."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.navigation.page import Page

from app.core import rows, state
from app.core.address import BOUND, ONE_SENTENCE
from app.core.markdown import problem, verbatim
from app.sentence import chart, compute, properties
from bgt_core.contracts import SEMANTIC
from bgt_core.data.words import spans, without
from bgt_core.errors import BgtError

WORDS, PROPERTIES = "The effect of each word", "Properties of the sentence"  # tabs
EVERY_LANGUAGE = "The same meaning in every language"
MANY = 40  # words and marks; longer sentences are not drawn


@dataclass(frozen=True)
class Next:
    """The pages that parts of this page link to."""

    latents: Page
    plane: Page
    style: Page
    similarity: Page
    probes: Page


def onward(page: Page, label: str, **query: str) -> None:
    """A link to another page, opened with these parameters."""
    st.page_link(page, label=label, icon=":material/arrow_forward:", query_params=query or None)


@st.fragment
def more(loaded: state.Loaded, text: str, lang: str, following: Next) -> None:
    """Show the parts that are read one at a time, as tabs; a part is computed when its tab is open."""
    titles = [WORDS, *[PROPERTIES] * bool(properties.names(lang))]
    if not loaded.cannot_write and len(compute.targets(loaded, lang)) > 1:
        titles.append(EVERY_LANGUAGE)
    for title, tab in zip(titles, st.tabs(titles, key="more", **BOUND), strict=True):
        with tab:
            if not tab.open:
                continue
            if title == WORDS:
                words(loaded, text, lang, following.similarity)
            elif title == PROPERTIES:
                probed(loaded, text, lang, following.probes)
            else:
                languages(loaded, text, lang, following.style)


def words(loaded: state.Loaded, text: str, lang: str, similarity: Page) -> None:
    """Show how far each latent moves if a word is left out."""
    count = len(spans(text, lang))
    if not 2 <= count <= MANY:
        st.caption(
            f"Words are left out one at a time of sentences with 2 to {MANY} words and marks; yours has {count}."
        )
        return
    table = compute.left_out(loaded, text, lang)
    highest = max(1e-6, float(table[list(loaded.latents)].to_numpy().max()))
    keys = " ".join(f"{chart.square(latent)} {latent}" for latent in loaded.latents)
    st.html(
        f"How far does each latent move when one word is left out? {keys}. The highest bar is {highest:.2f}: 0 is not "
        "at all, 1 means unrelated."
    )
    st.html(chart.bars(table, list(loaded.latents), highest, lang))
    strongest = {latent: table["word"].iloc[int(table[latent].to_numpy().argmax())] for latent in loaded.latents}
    heard = "; ".join(f"the {latent} latent most for “{verbatim(word)}”" for latent, word in strongest.items())
    st.caption(f"The largest moves: {heard}.")
    with st.expander("The same as a table"):
        st.dataframe(
            table.rename(
                columns={"word": "Left out", **{latent: rows.latent_title(latent) for latent in loaded.latents}}
            ),
            hide_index=True,
            column_config={
                rows.latent_title(latent): st.column_config.NumberColumn(format="%.2f") for latent in loaded.latents
            },
            alt="1 - cosine of each latent between the sentence and the sentence without each word or mark",
        )
    shorter = list(without(text, lang))[int(table[SEMANTIC].to_numpy().argmax())]
    language = rows.language_name(lang)
    label = f"More on two sentences: with and without “{verbatim(strongest[SEMANTIC])}”"
    onward(similarity, label, left=text, right=shorter, one_left_lang=language, one_right_lang=language)


def probed(loaded: state.Loaded, text: str, lang: str, probes: Page) -> None:
    """Show what linear probes read from each latent."""
    from app.core.results import reading

    st.markdown(
        "A probe is a linear classifier trained on one latent of the example sentences. It never sees the words, so "
        "its right answers come from the latent."
    )
    try:
        with st.spinner("Fitting probes on the example sentences"):
            known = [properties.read(loaded, text, lang, name) for name in properties.names(lang)]
    except BgtError as error:
        problem(error)
        return
    st.html(chart.probes(known))
    tested = min(one.tested for one in known)
    st.caption(
        f"✓: right for this sentence. In brackets: accuracy on {tested} or more {rows.language_name(lang)} "
        f"held-out sentences. The last column: accuracy of always giving the most frequent answer. {reading.RULE}"
    )
    onward(probes, "More on what each latent shows: probes")


def languages(loaded: state.Loaded, text: str, lang: str, style: Page) -> None:
    """Show its meaning, generated in each language of the model."""
    with st.spinner("Writing it in each language"):
        table = compute.in_every_language(loaded, text, lang)
    st.html(chart.in_languages(table))
    st.caption(
        "Each is written from the semantic latent of your sentence. Its style is the mean language latent of the "
        "translations of those example sentences that are nearest to yours in style. The number is the semantic cosine "
        "of the written sentence and yours."
    )
    other = table.loc[table["lang"] != lang, "lang"].iloc[0]
    langs = {"source_lang": rows.language_name(lang), "lang": rows.language_name(other)}
    onward(style, "More on writing in another language", how=ONE_SENTENCE, source=text, **langs)
