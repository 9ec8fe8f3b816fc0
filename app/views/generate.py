"""Can the meaning stay while the manner changes?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app import exports, rows, state, writing
from app.address import BOUND
from app.views import decoding, directions
from bgt_core.errors import BgtError

EXAMPLE = ("Can you help me?", "He is my friend.")
REMEMBERED = 20  # results of a session


def page() -> None:
    loaded = state.model()
    st.title("Change the style, keep the meaning")
    if loaded.cannot_write:
        st.info(
            f"{loaded.cannot_write} Choose another model at the side, one that was trained with a `bgt` "
            "recipe, or with `vgvae` and `model.decoder=lstm`.",
            icon=":material/edit_off:",
        )
        return
    st.markdown("How would one sentence be said in the manner of another, or longer, or as a question?")
    by_example, by_direction = st.tabs(["In the manner of a sentence", "In a direction"], key="how", **BOUND)
    with by_example:
        example(loaded)
    with by_direction:
        directions.page(loaded)


def example(loaded: state.Loaded) -> None:
    langs = loaded.langs
    with st.container(border=True):  # a form would forget its text on another page
        left, right = st.columns(2)
        meaning, manner = EXAMPLE if "en" in langs else ("", "")
        source = left.text_area("Source: its meaning", meaning, key="source", height=90, **BOUND)
        style = right.text_area("Style: its manner", manner, key="style", height=90, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            source_lang = language("Language of Source", langs, "source_lang")
            lang = language("Language of Style and output", langs, "lang")
            st.space("stretch")
            pressed = st.button("Generate", type="primary", shortcut="ctrl+enter")
    with st.expander("Decoding options"):
        search, seed, max_length, mix = decoding.settings()
    history = st.session_state.setdefault("history", [])
    if pressed and not (source.strip() and style.strip()):
        st.warning("Type a sentence for its meaning and one for its manner.", icon=":material/edit:")
    elif pressed:
        if mix < 1 and source_lang != lang:
            st.caption(f"The mix is left out: the {loaded.second_latent} latents of two languages share no axes.")
        source, style = bounded("Source", source), bounded("Style", style)
        try:
            with decoding.progress() as report:
                transferred = writing.transfer(
                    loaded, source, style, lang, search, source_lang=source_lang, mix=mix, seed=seed,
                    max_length=max_length, report=report,
                )  # fmt: skip
            history.insert(0, transferred)
        except BgtError as error:
            st.error(str(error))
        del history[REMEMBERED:]
    if history:
        result(history[0])
        earlier(history)
    else:
        st.caption("Nothing is written yet: press Generate, or type two sentences of your own.")


def language(title: str, langs: Sequence[str], key: str) -> str:
    return st.segmented_control(
        title, langs, default=langs[0], required=True, format_func=rows.language_name, key=key, **BOUND
    )


def bounded(title: str, text: str) -> str:
    """The text that is read, with a warning where it is not all of it."""
    if len(text) > writing.MAX_CHARACTERS:
        st.warning(f"{title} is long: only its first {writing.MAX_CHARACTERS} characters are read.")
    return text[: writing.MAX_CHARACTERS]


def result(transferred: dict[str, Any]) -> None:
    st.subheader("Output")
    st.code(transferred["output"] or "(nothing)", language=None, wrap_lines=True)
    titles = {"cosine": "Meaning: cosine", "manner": "Manner: cosine", "shared": "Words shared"}
    two = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        pd.DataFrame(transferred["measures"]).rename(
            columns={"sentence": "", "text": "Text", **titles, **rows.COUNTED}
        ),
        hide_index=True,
        column_config=dict.fromkeys(titles.values(), two),
        placeholder="",
        alt="Output, source and style, and both rebuilt: cosines in both latents, words shared, length, punctuation",
    )
    st.caption(
        "Done well, the output is nearer to Source in meaning, and follows Style in length and marks. Rebuilt: written "
        "again from its own latents, the best the decoder does. Cosines are to the output, words shared with Source. "
        f"Written at {transferred['tokens_per_second']:.0f} tokens per second."
    )


def earlier(history: list[dict[str, Any]]) -> None:
    st.subheader("This session")
    shown = pd.DataFrame(history)[["output", "source", "style", "search", "seed"]].rename(columns=str.capitalize)
    st.dataframe(shown, hide_index=True, alt=f"The last {REMEMBERED} results, newest first")
    flat = pd.DataFrame([{**row, "measures": json.dumps(row["measures"])} for row in history])
    exports.offer(f"bgt-transfers-{history[0]['model']}", flat)
