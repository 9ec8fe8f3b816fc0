"""Can the meaning stay while the style changes?"""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from app import checks, exports, rows, state, writing
from app.address import BOUND
from app.components.copy import copy_link
from app.verbatim import problem
from app.views import decoding, directions, grid, interpolation
from app.views.help import how_to_read
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

EXAMPLE = ("Tom is my friend.", "Can you help me?")
REMEMBERED = 20  # results of a session
GRID, ONE, DIRECTION, BETWEEN = "A grid", "One sentence", "In a direction", "Between two sentences"
HELP = """
- **Source** gives the meaning, its *semantic* latent; **Style** gives the rest, its second latent. The output is
  written by the model from these two vectors alone.
- **Semantic cosine**, of each sentence to the output: high for Source, if the meaning was kept. **Style cosine**: high
  for Style, if the style was taken; only within one language, for the second latents of two languages share no axes.
- **Rebuilt**: written again from its own two latents, the best that the model can do with that sentence.
- **Candidates**: what the search ends with. The first has the highest semantic cosine + 0.5 × style cosine + 0.3 ×
  log-probability per token.
- **Decoding options**: a beam keeps that many unfinished sentences; a sample draws. Tokens are the word parts that the
  model reads and writes.
"""


def page() -> None:
    loaded = state.model()
    st.title("Meaning by manner")
    if loaded.cannot_write:
        st.info(
            f"{loaded.cannot_write} Choose another model at the side, one that was trained with a `bgt` "
            "recipe, or with `vgvae` and `model.decoder=lstm`.",
            icon=":material/edit_off:",
        )
        return
    st.markdown("Can the meaning of one sentence be written in the style of another, or longer, or as a question?")
    default = ONE if "source" in st.query_params else GRID  # a link to a sentence
    titles = [GRID, ONE, DIRECTION, BETWEEN]
    of_many, of_one, by_direction, way = st.tabs(titles, default=default, key="how", **BOUND)
    with of_many:
        grid.page(loaded, bool(of_many.open))
    with of_one:
        example(loaded, bool(of_one.open))
    with by_direction:
        directions.page(loaded)
    with way:
        interpolation.between(loaded, bool(way.open))
    copy_link()


def example(loaded: state.Loaded, is_open: bool) -> None:
    """Opens with an example written, once somebody looks."""
    langs = loaded.langs
    with st.container(border=True):  # a form would forget its text on another page
        left, right = st.columns(2)
        meaning, wording = EXAMPLE if "en" in langs else ("", "")
        source = left.text_area("Source: what to say", meaning, key="source", height=90, **BOUND)
        style = right.text_area("Style: how to say it", wording, key="style", height=90, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            source_lang = grid.language("Language of Source", langs, "source_lang")
            lang = grid.language("Language of Style and output", langs, "lang")
            mix = st.slider("Style: 0 the source's own, 1 the style's", 0.0, 1.0, 1.0, 0.05, key="mix", **BOUND)
            pressed = st.button("Generate", type="primary", shortcut="ctrl+enter")
    with st.expander("Decoding options"):
        search, seed, max_length = decoding.settings()
    history = st.session_state.setdefault("history", [])
    if not (source.strip() and style.strip()):
        st.warning("Type a sentence for its meaning and one for its style.", icon=":material/edit:")
        return
    if mix < 1 and source_lang != lang:
        st.caption(f"The mix is left out: the {loaded.second_latent} latents of two languages share no axes.")
    source, style = bounded("Source", source), bounded("Style", style)
    for title, text, its in (("Source", source, source_lang), ("Style", style, lang)):
        for warning in checks.warnings(loaded, [text], its):
            st.warning(f"{title}: {warning}", icon=":material/translate:")
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    first = is_open and not history and not decoding.stopped()
    if pressed or first:
        try:
            with decoding.progress() as report:
                transferred = writing.transfer(
                    loaded, source, style, lang, search, source_lang=source_lang, mix=mix, seed=seed,
                    max_length=max_length, report=report,
                )  # fmt: skip
            history.insert(0, transferred)
        except BgtError as error:
            problem(error)
        del history[REMEMBERED:]
    if history and settings.items() <= history[0].items():
        result(loaded, history[0])
    else:
        st.caption("Not written yet: press Generate.")
    if history:
        earlier(history)
    how_to_read(HELP)


def bounded(title: str, text: str) -> str:
    """The text that is read, with a warning where it is not all of it."""
    if len(text) > writing.MAX_CHARACTERS:
        st.warning(f"{title} is long: only its first {writing.MAX_CHARACTERS} characters are read.")
    return text[: writing.MAX_CHARACTERS]


def result(loaded: state.Loaded, transferred: dict[str, Any]) -> None:
    st.subheader("Output")
    decoding.sentence(transferred["output"])
    if notice := writing.beyond(transferred["rebuilt"]):
        st.warning(notice, icon=":material/warning:")
    style = f"{loaded.second_latent.capitalize()} cosine"
    titles = {"cosine": "Semantic cosine", "style": style, "shared": "Words shared"}
    measured = pd.DataFrame(transferred["measures"])
    numbers = [*titles, *rows.COUNTED]
    two = st.column_config.NumberColumn(format="%.2f", width=112)
    st.dataframe(
        measured[["sentence", *numbers, "text"]].rename(
            columns={"sentence": "", "text": "Text", **titles, **rows.COUNTED}
        ),
        hide_index=True,
        column_config={"": st.column_config.TextColumn(width=110)}
        | dict.fromkeys(titles.values(), two)
        | {title: st.column_config.Column(width=90) for title in rows.COUNTED.values()},
        placeholder="",
        alt="Output, source and style, and both rebuilt: cosines in both latents, words shared, length, punctuation",
    )
    st.caption(
        "Cosines are to the output, words shared with Source. Written at "
        f"{transferred['tokens_per_second']:.0f} tokens per second."
    )
    with st.expander(f"Candidates: {len(transferred['candidates'])}"):
        named = {SEMANTIC: titles["cosine"], loaded.second_latent: style, "text": "Text"}
        st.dataframe(
            pd.DataFrame(transferred["candidates"])[list(named)].rename(columns=named),
            hide_index=True,
            column_config=dict.fromkeys((titles["cosine"], style), two),
            alt="What the search ended with, the one that keeps most of both latents first",
        )


def earlier(history: list[dict[str, Any]]) -> None:
    st.subheader("This session")
    shown = pd.DataFrame(history)[["output", "source", "style", "search", "seed"]].rename(columns=str.capitalize)
    st.dataframe(shown, hide_index=True, alt=f"The last {REMEMBERED} results, newest first")
    nested = ("measures", "candidates", "rebuilt")
    flat = pd.DataFrame([{**row, **{name: json.dumps(row[name]) for name in nested}} for row in history])
    exports.offer(f"bgt-transfers-{history[0]['model']}", flat)
