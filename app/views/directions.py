"""What if it were longer, or a question? The second half of the page that changes the style."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from app import exports, options, rows, state, writing
from bgt_core.errors import BgtError
from bgt_core.generation.directions import Directions

EXAMPLES = {"en": "I will go to the station tomorrow.", "fr": "Tu es fatigué."}


def page(loaded: state.Loaded) -> None:
    langs = loaded.bgt.langs
    known = [data for data in options.read().data.values() if set(data.langs) <= set(langs)]
    usable = [lang for lang in langs if any(lang in data.langs for data in known)]
    if not usable:
        st.info("Directions are found on sentences; start the app with `--data` and a file of this model's languages.")
        return
    st.markdown(
        "Each slider moves the **language latent** along what a linear probe found: what one word, one mark, or being "
        "a question adds to it. The meaning is left alone."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lang = st.segmented_control(
            "Language", usable, default=usable[0], required=True, format_func=rows.name, key="dlang",
            bind="query-params",
        )  # fmt: skip
        source = st.text_input("Sentence", EXAMPLES.get(lang, ""), key=f"sentence_{lang}", bind="query-params")
    if not source.strip():
        st.warning("Type a sentence to say in another way.", icon=":material/edit:")
        return
    source = source[: writing.MAX_CHARACTERS]
    corpus = next(data for data in known if lang in data.langs)
    try:
        found = writing.found(loaded.digest, corpus, lang, loaded)
        sliders(loaded, found, source, lang)
        stops(loaded, found, source, lang)
    except BgtError as error:
        st.error(str(error))


@st.fragment
def sliders(loaded: state.Loaded, found: Directions, source: str, lang: str) -> None:
    """A slider a direction; every move is written at once, and reruns only this."""
    steps = []
    for column, (name, (title, unit, marks)) in zip(st.columns(3), writing.FACTORS.items(), strict=True):
        low, high = float(marks[0]), float(marks[-1])
        steps.append(
            column.slider(title, low, high, 0.0, 0.5, key=f"move_{name}", help=f"In {unit}.", bind="query-params")
        )
    try:
        with st.spinner("Writing"):
            (text,) = writing.moved(loaded, found, source, lang, [steps])
    except BgtError as error:
        st.error(str(error))
        return
    st.code(text or "(nothing)", language=None, wrap_lines=True)
    st.caption(described({"Before": source, "After": text}))


def described(texts: Mapping[str, str]) -> str:
    return ". ".join(
        f"{title}: words {rows.words(text)}, marks {rows.punctuation(text)}" for title, text in texts.items()
    )


def stops(loaded: state.Loaded, found: Directions, source: str, lang: str) -> None:
    st.subheader("Every direction, stop by stop")
    with st.spinner("Writing every stop"):
        table = stops_of(loaded.digest, source, lang, found, loaded)
    named = {
        "direction": "Direction",
        "step": "Step",
        "text": "Written there",
        "words": "Words",
        "punctuation": "Marks",
    }
    st.dataframe(
        table[list(named)].rename(columns=named),
        hide_index=True,
        height="content",
        column_config={"Written there": st.column_config.TextColumn(width="large")},
        alt="What is written at every step of every direction",
    )
    read = (f"{title.lower()} {r:.2f}" for (title, _, _), r in zip(writing.FACTORS.values(), found.read, strict=True))
    st.caption(f"How well each is read from the latents of other sentences, as a correlation: {', '.join(read)}.")
    st.caption("A step is what the probe says one unit adds; how far the decoder follows is what stands here.")
    exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)


@st.cache_data(max_entries=32, show_spinner=False)
def stops_of(digest: str, source: str, lang: str, _found: Directions, _loaded: state.Loaded) -> pd.DataFrame:
    return writing.along(_loaded, _found, source, lang)
