"""What is this model?"""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import Page

from app import rows, state
from app.views.card import records
from bgt_core.contracts import LANGUAGE, SYNTACTIC
from bgt_core.data.columns import LABEL, parse_columns

EXAMPLES = {  # what it shows: a sentence for its meaning, one for its manner, the language of each
    "Turn a question into a statement": ("Can you help me?", "en", "He is my friend.", "en"),
    "Say in English what is written in French": ("Il fait très froid aujourd'hui.", "fr", "It's late.", "en"),
    "Say in French what is written in English": ("I want to buy a new car.", "en", "Il fait froid.", "fr"),
}
MANNER = {LANGUAGE: "how that language said it", SYNTACTIC: "how it is built"}  # what the second latent keeps


def page(two_latents: Page, style: Page, similarity: Page, probes: Page) -> None:
    loaded = state.model()
    if loaded.translates:
        st.title("A translator")
    else:
        st.title("A sentence, in two parts" if loaded.second_latent else "What a sentence means")
    st.markdown(described(loaded))
    if loaded.info:
        cards(loaded)
    links(loaded, two_latents, style)
    st.page_link(similarity, label="Compare two sentences", icon=":material/compare_arrows:")
    st.page_link(probes, label="Probe what a latent knows", icon=":material/science:")
    card = loaded.info.get("card", {})
    records({name: card[name] for name in ("limits", "known limits") if name in card})


def described(loaded: state.Loaded) -> str:
    """What its latents keep, and what it learnt that from."""
    if loaded.translates:
        return (
            f"This model translates {loaded.translates}: `bgt translate` writes with it, this app does not. What its "
            "encoder reads is averaged and shown as a **semantic latent**, which nothing trained it to be."
        )
    second = loaded.second_latent
    reads = f"This model reads a sentence {'twice' if second else 'once'}."
    meaning = "Its **semantic latent** keeps what the sentence means"
    meaning += ", in one space for all languages" if len(loaded.langs) > 1 else ""
    manner = f"; its **{second} latent** keeps {MANNER.get(second, 'how it is said')}" if second else ""
    learnt = f" It learnt this from {learnt_from(loaded)}." if loaded.info else ""
    return f"{reads} {meaning}{manner}.{learnt}"


def learnt_from(loaded: state.Loaded) -> str:
    """What the rows of its training data are."""
    columns = parse_columns(loaded.info["arguments"].get("data.columns", loaded.langs))
    if LABEL in columns.values():
        return "labelled pairs of sentences"
    if len(loaded.langs) > 1:
        return "translations"
    return "paraphrases" if len(columns) > 1 else "sentences alone"


def cards(loaded: state.Loaded) -> None:
    info = loaded.info
    with st.container(horizontal=True):
        st.metric("Languages", loaded.languages, border=True)
        st.metric("Parameters", f"{info['parameters'] / 1e6:.1f} M", border=True)
        st.metric("Training steps", f"{info['step']:,}", border=True)
        st.metric("Checkpoint", loaded.short, border=True, help="The start of its weights' SHA-256 hash.")


def links(loaded: state.Loaded, two_latents: Page, style: Page) -> None:
    st.subheader("Try it")
    st.page_link(two_latents, label="See what each latent holds", icon=":material/scatter_plot:")
    langs = () if loaded.cannot_write else loaded.langs
    for label, (source, source_lang, manner, lang) in EXAMPLES.items():
        if not {source_lang, lang} <= set(langs):
            continue
        languages = {"source_lang": rows.language_name(source_lang), "lang": rows.language_name(lang)}
        parameters = {"source": source, "style": manner, **languages}
        st.page_link(style, label=label, icon=":material/edit_note:", query_params=parameters)
