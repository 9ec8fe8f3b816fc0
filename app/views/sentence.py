"""What does each latent hold of one sentence? The page that opens first."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import Page

from app import checks, rows, sentence, startup, state
from app.address import BOUND
from app.components.copy import copy_link
from app.views import heard, marked
from app.views.help import how_to_read
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import LABEL, parse_columns
from bgt_core.data.text import normalise

MAX_CHARACTERS = 300  # far longer than what the models that ship were trained on
EXAMPLE = "Can I help you?"
STYLE_OF = {LANGUAGE: "how its language says it", SYNTACTIC: "how it is built"}  # what the second latent keeps
SUCH_AS = {  # by probing task
    "length": "length",
    "punct-num": "punctuation",
    "punct-first": "punctuation",
    "top-const": "sentence pattern",
    "depth": "sentence pattern",
    "gender": "gender of articles",
}


@dataclass(frozen=True)
class Next:
    """The pages that blocks of this one lead to."""

    latents: Page
    plane: Page
    style: Page
    similarity: Page
    probes: Page


def heading(place: DeltaGenerator, loaded: state.Loaded | None = None) -> None:
    """The title and what the model does; what most models do until this one is loaded."""
    second = loaded.second_latent if loaded else LANGUAGE
    several = len(loaded.langs) > 1 if loaded else True
    space = ", in one space for all its languages" if several else ""
    meaning = f"{marked.key(SEMANTIC)} The <b>semantic latent</b> keeps <b>what it means</b>{space}"
    style = STYLE_OF.get(second, "how it is said")
    learnt = f" It learnt this from {learnt_from(loaded)}." if loaded and loaded.info else ""
    with place.container():
        if loaded and loaded.translates:
            st.title("A translator")
            st.markdown(
                f"This model translates {loaded.translates}: `bgt translate` writes with it, this app does not. What "
                "its encoder reads is averaged and shown as a **semantic latent**, which nothing trained it to be."
            )
        elif second:
            more = such_as(loaded) if loaded else ""
            st.title("A sentence, in two parts")
            st.html(
                f"{marked.STYLE}This model reads a sentence twice. {meaning}; {marked.key(second)} the "
                f"<b>{second} latent</b> keeps <b>{style}</b>{more}.{learnt}"
            )
        else:
            st.title("What a sentence means")
            st.html(f"{marked.STYLE}This model reads a sentence once. {meaning}; it has no latent for style.{learnt}")


def such_as(loaded: state.Loaded) -> str:
    """What the second latent knows better than the semantic one, as stored probes have it."""
    known = sentence.second_knows(loaded)
    kept = dict.fromkeys(words for task, words in SUCH_AS.items() if task in known)
    words = " and ".join(", ".join(kept).rsplit(", ", 1))
    return f", such as its {words}" if kept else ""


def learnt_from(loaded: state.Loaded) -> str:
    """What the rows of its training data are."""
    columns = parse_columns(loaded.info["arguments"].get("data.columns", loaded.langs))
    if LABEL in columns.values():
        return "labelled pairs of sentences"
    if len(loaded.langs) > 1:
        return "translations"
    return "paraphrases" if len(columns) > 1 else "sentences alone"


def page(place: DeltaGenerator, following: Next) -> None:
    loaded = state.model()
    heading(place, loaded)
    text, lang = field(loaded)
    if not text:
        st.warning("Type a sentence.", icon=":material/edit:")
        return
    nearest(loaded, text, lang, following)
    if loaded.cannot_write:
        st.caption(loaded.cannot_write)
    else:
        rebuilt(loaded, text, lang)
        swaps(loaded, text, lang, following)
    heard.words(loaded, text, lang, following.similarity)
    above = st.container()  # probes are fitted last: that takes seconds the first time
    if not loaded.cannot_write:
        heard.languages(loaded, text, lang, following.style)
    with above:
        heard.probed(loaded, text, lang, following.probes)
    explained(loaded)
    copy_link()


def field(loaded: state.Loaded) -> tuple[str, str]:
    """The sentence, cleaned up, and its language."""
    langs = list(loaded.langs)
    left, right = st.columns([5, 1])
    typed = left.text_input("Your sentence", EXAMPLE, key="sentence", max_chars=MAX_CHARACTERS, **BOUND)
    lang = right.selectbox(
        "Its language", langs, langs.index("en") if "en" in langs else 0, format_func=rows.language_name,
        key="language", **BOUND,
    )  # fmt: skip
    text = normalise(typed or "")
    for warning in checks.warnings(loaded, [text], lang):
        st.warning(warning, icon=":material/translate:")
    return text, lang


def nearest(loaded: state.Loaded, text: str, lang: str, following: Next) -> None:
    """Its neighbours in each latent, side by side."""
    sides = st.columns(len(loaded.latents), gap="large")
    several = len(loaded.langs) > 1
    for side, latent in zip(sides, loaded.latents, strict=True):
        near = sentence.nearest(loaded, text, lang, latent)
        with side:
            if latent == SEMANTIC:
                where = "in any language" if several else "of all"
                marked.head("By meaning", f"Nearest {where} in the semantic latent", latent)
            else:
                where = f" {rows.language_name(lang)} ones" if several else ""
                marked.head("By style", f"Nearest{where} in the {latent} latent", latent)
            if near.empty:
                st.caption("There are no sentences to compare with: start the app with `--data LANG=FILE`.")
                continue
            marked.neighbours(text, lang, near, latent, latent == SEMANTIC and several)
            st.caption(in_common(loaded, text, lang, latent, near))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            following.latents,
            label="See it on both maps" if loaded.second_latent else "See it on the map",
            icon=":material/arrow_forward:",
            query_params={"star": text, "star_lang": lang},
        )
        if loaded.second_latent:
            st.page_link(following.plane, label="Where the latents disagree", icon=":material/arrow_forward:")
    if any(lang in startup.LANGS for lang in loaded.langs):
        st.caption(startup.CREDIT)


def in_common(loaded: state.Loaded, text: str, lang: str, latent: str, near: pd.DataFrame) -> str:
    """How many neighbours share the final mark and the length of a text, and how many of all sentences do."""
    of_all = sentence.alike(text, lang, sentence.nearest(loaded, text, lang, latent, None)).mean()
    shared = sentence.alike(text, lang, near).sum()
    mark = rows.mark(text)
    return (
        f"{shared['mark']} of {len(near)} end as it does ({mark}); {shared['length']} of {len(near)} are as long, "
        f"within a word. Of all sentences here: {of_all['mark']:.0%} and {of_all['length']:.0%}."
    )


def rebuilt(loaded: state.Loaded, text: str, lang: str) -> None:
    """The sentence written again from both of its own latents."""
    st.subheader("Written again from its two latents")
    (again,) = sentence.written(loaded, [text], [text], lang).itertuples()
    marked.output(again.text, again.meaning, again.style, loaded.second_latent, lang)
    if again.meaning < sentence.POOR:
        st.warning(
            "This sentence is beyond this small model: what it writes from its own two latents means something else. "
            "So expect as little of what is written below. Shorter, everyday sentences fare better.",
            icon=":material/info:",
        )


@st.fragment
def swaps(loaded: state.Loaded, text: str, lang: str, following: Next) -> None:
    """Either latent exchanged for that of another sentence."""
    st.subheader("Half of it exchanged")
    offered = sentence.exchanged(loaded, text, lang)
    if offered.empty:
        return
    other = st.selectbox("The other sentence: choose one, or type your own", offered["other"], accept_new_options=True)
    other = normalise(other[:MAX_CHARACTERS])
    parts = ((text, other, "Your meaning, the other's style"), (other, text, "The other's meaning, your style"))
    for side, (meaning, style, title) in zip(st.columns(2, gap="large"), parts, strict=True):
        (row,) = sentence.written(loaded, [meaning], [style], lang).itertuples()
        side.markdown(f"**{title}**")
        with side:
            marked.output(row.text, row.meaning, row.style, loaded.second_latent, lang)
    language = rows.language_name(lang)
    st.page_link(
        following.style,
        label="More on writing: meaning by style",
        icon=":material/arrow_forward:",
        query_params={"source": text, "style": other, "source_lang": language, "lang": language},
    )


def explained(loaded: state.Loaded) -> None:
    second = loaded.second_latent
    lines = [
        "- A **latent** is a list of numbers that a model computes from a sentence. Two sentences are near where their "
        "lists point the same way: **cosine** 1 is the same direction, 0 has nothing in common.",
        "- **By meaning** lists the sentences with the nearest semantic latents, of all the example sentences. There "
        "are about a thousand in a language, so few are close to what you type. Marked: words that both have.",
    ]
    if second:
        lines.append(
            f"- **By style** lists those with the nearest {second} latents. They may speak of anything. ✓ is on what "
            "they share: length within a word, final mark. The line below counts that, beside how many of all "
            "sentences have it."
        )
    if not loaded.cannot_write:
        lines.append(
            "- What is **written** comes from the model's decoder, which sees the two latents and nothing else. "
            "*Meaning kept* and *style kept* are cosines between what was written, read again, and the latents it was "
            "written from."
        )
    how_to_read("\n".join(lines))
