"""What each latent heard of one sentence: its words one by one, what probes read, and its meaning in each language."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import Page

from app import properties, rows, sentence, state
from app.verbatim import verbatim
from app.views import marked
from bgt_core.contracts import SEMANTIC

MANY = 40  # words and marks past which nothing is drawn under them


def words(loaded: state.Loaded, text: str, lang: str, similarity: Page) -> None:
    """How far each latent moves when a word is left out."""
    st.subheader("What each word does")
    table = sentence.left_out(loaded, text, lang)
    if len(table) < 2 or len(table) > MANY:
        st.caption(
            f"Words are left out one at a time of sentences with 2 to {MANY} words and marks; yours has {len(table)}."
        )
        return
    highest = max(1e-6, float(table[list(loaded.latents)].to_numpy().max()))
    keys = " ".join(f"{marked.key(latent)} {latent}" for latent in loaded.latents)
    st.html(
        f"Left out one at a time: how far does each latent move? {keys}. The highest bar is {highest:.2f}, where 0 is "
        "not at all and 1 leaves nothing in common."
    )
    marked.bars(table, list(loaded.latents), highest, lang)
    strongest = {latent: table["word"].iloc[int(table[latent].to_numpy().argmax())] for latent in loaded.latents}
    heard = "; ".join(f"the {latent} latent most for “{verbatim(word)}”" for latent, word in strongest.items())
    st.caption(f"Listens: {heard}.")
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
    without = sentence.without(text, lang)[int(table[SEMANTIC].to_numpy().argmax())]
    language = rows.language_name(lang)
    st.page_link(
        similarity,
        label=f"More on two sentences: with and without “{verbatim(strongest[SEMANTIC])}”",
        icon=":material/arrow_forward:",
        query_params={"left": text, "right": without, "one_left_lang": language, "one_right_lang": language},
    )


def probed(loaded: state.Loaded, text: str, lang: str, probes: Page) -> None:
    """What linear probes of each latent say of the sentence."""
    names = properties.names(lang)
    if not names:
        return
    st.subheader("What a probe reads from it")
    st.markdown(
        "A probe is the simplest classifier there is, trained on one latent of the example sentences. It never sees "
        "the words: what it gets right, the latent holds."
    )
    with st.spinner("Fitting probes on the example sentences"):
        known = [properties.read(loaded, text, lang, name) for name in names]
    marked.probes(known)
    tested = min(one.tested for one in known)
    st.caption(
        f"✓: right here. In brackets: how often such probes are right on {tested} or more {rows.language_name(lang)} "
        "sentences that they never saw. The last column: how often the most frequent answer is right. A latent that is "
        "not above it holds nothing of that."
    )
    st.page_link(probes, label="More on what each latent knows: probes", icon=":material/arrow_forward:")


def languages(loaded: state.Loaded, text: str, lang: str, style: Page) -> None:
    """Its meaning, written in each language of the model."""
    table = sentence.in_every_language(loaded, text, lang)
    if len(table) < 2:
        return
    st.subheader("The same meaning in every language")
    marked.in_languages(table)
    st.caption(
        "Each is written from its semantic latent, with a style that its language has: the mean language latent of the "
        "translations of the example sentences that are nearest to yours in style. The number is the cosine of what is "
        "written, read again, to yours in the semantic latent."
    )
    other = table.loc[table["lang"] != lang, "lang"].iloc[0]
    st.page_link(
        style,
        label="More on writing in another language",
        icon=":material/arrow_forward:",
        query_params={"source": text, "source_lang": rows.language_name(lang), "lang": rows.language_name(other)},
    )
