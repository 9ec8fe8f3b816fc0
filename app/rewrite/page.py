"""Generate text from one sentence's meaning and another's style."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from app.core import controls, exports, interpolation, rows, state, writing
from app.core.address import BOUND, ONE_SENTENCE
from app.core.component import copy_link
from app.core.markdown import how_to_read, problem, verbatim, written
from app.rewrite import compute, decoding, directions, grid
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.errors import BgtError

SOURCE = "You are late."
STYLES = {"fr": "Comment allez-vous ?", "en": "It's late!"}  # the one that shows most comes first
REMEMBERED = 20  # results of a session
GRID, DIRECTION, BETWEEN = "A grid", "In a direction", "Between two sentences"
HELP = """
- **Source** provides the meaning (its *semantic* latent), **Style** the style (its second latent). The model writes the
  output from these two vectors alone.
- **A warning** says what the output lost of Source, by rules: negation, numbers, names, the order of the words that
  both have, and a much longer or shorter text. The model has no say in it.
- **Semantic cosine**, of each sentence to the output: high for Source if the model finds the same meaning in both.
  **Style cosine**: high for Style, if the style was taken. It needs sentences of one language: second latents are not
  comparable across languages.
- **Rebuilt**: the reconstruction, generated from the sentence's own two latents: the best that the model can do.
- **Candidates**: the sentences that the search found. The first has the highest semantic cosine + 0.5 × style
  cosine + 0.3 × log-probability per token.
- **Decoding options**: a beam keeps that many unfinished sentences, a sample draws one token after another. Tokens are
  the subword units that the model reads and writes.
"""
BETWEEN_ENDS = {
    "en": ("I love you.", "They live in Paris."),
    "fr": ("Je t'aime.", "Ils habitent à Paris."),
}
BETWEEN_HELP = """
- The two sentences' latents are the ends of a straight line. At each step the model writes a sentence from the latents
  there. Latents that do not move stay those of the first sentence.
- With **Both**, the ends are the reconstructions of the two sentences. If only one latent moves, the last step has the
  last sentence's meaning in the first one's style, or the other way round.
- **Cosines** compare the semantic latents of the generated sentence and both ends. Sentences change in jumps although
  the latents move continuously.
"""


def page() -> None:
    loaded = state.model()
    st.title("Meaning by style")
    if loaded.cannot_write:
        st.info(
            f"{loaded.cannot_write} Choose another model in the sidebar, one that was trained with a `bgt` "
            "recipe, or with `vgvae` and `model.decoder=lstm`.",
            icon=":material/edit_off:",
        )
        return
    st.markdown("Write the meaning of one sentence in another's style, or turn it into a question.")
    of_many, of_one, by_direction, way = st.tabs([GRID, ONE_SENTENCE, DIRECTION, BETWEEN], key="how", **BOUND)
    with of_many:
        grid.page(loaded, bool(of_many.open))
    with of_one:
        example(loaded, bool(of_one.open))
    with by_direction:
        directions.page(loaded)
    with way:
        between(loaded, bool(way.open))
    copy_link()


def example(loaded: state.Loaded, is_open: bool) -> None:
    """The tab of one sentence; an example is generated when the tab is first opened."""
    langs = loaded.langs
    with st.container(border=True):  # a form would forget its text on another page
        left, right = st.columns(2)
        into = next((each for each in STYLES if each in langs and "en" in langs), langs[0])
        meaning, wording = (SOURCE, STYLES[into]) if "en" in langs else ("", "")
        source = left.text_area("Source: what to say", meaning, key="source", height=90, **BOUND)
        style = right.text_area("Style: how to say it", wording, key="style", height=90, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            source_lang = controls.language("Language of Source", langs, "source_lang")
            lang = controls.language("Language of Style and output", langs, "lang", into)
            mix = st.slider("Strength of the style: 0 is the source's own", 0.0, 1.0, 1.0, 0.05, key="mix", **BOUND)
            pressed = st.button("Generate", type="primary", shortcut="ctrl+enter") and is_open
    with st.expander("Decoding options"):
        search, seed, max_length = decoding.settings()
    history = st.session_state.setdefault("history", [])
    if not (source.strip() and style.strip()):
        st.warning("Type a sentence for its meaning and one for its style.", icon=":material/edit:")
        return
    if mix < 1 and source_lang != lang:
        st.caption("The mix needs source and style in the same language.")
    source = controls.bounded(source, writing.MAX_CHARACTERS, "Source")
    style = controls.bounded(style, writing.MAX_CHARACTERS, "Style")
    controls.warn(loaded, [source], source_lang, "Source", "source_lang")
    controls.warn(loaded, [style], lang, "Style", "lang")
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    first = is_open and not history and not decoding.stopped()
    if pressed or first:
        place = st.empty()

        def draft(text: str) -> None:
            with place:
                written(text)

        try:
            with decoding.progress() as report:
                transferred = writing.transfer(
                    loaded, source, style, lang, search, source_lang=source_lang, mix=mix, seed=seed,
                    max_length=max_length, report=report, draft=draft,
                )  # fmt: skip
            history.insert(0, transferred)
        except BgtError as error:
            problem(error)
        place.empty()
        del history[REMEMBERED:]
    if history and settings.items() <= history[0].items():
        result(loaded, history[0])
    else:
        st.caption("Not written yet: press Generate.")
    if history:
        earlier(history)
    how_to_read(HELP)


def result(loaded: state.Loaded, transferred: dict[str, Any]) -> None:
    st.subheader("Output")
    written(transferred["output"])
    if changed := transferred["changed"]:
        st.warning(f"Compared with the source: {verbatim(changed)}.", icon=":material/warning:")
    if notice := compute.beyond(transferred["source"], transferred["rebuilt"], transferred["source_lang"]):
        st.warning(verbatim(notice), icon=":material/warning:")
    style = f"{loaded.second_latent.capitalize()} cosine"
    titles = {"cosine": "Semantic cosine", "style": style, "shared": "Words shared"}
    measured = pd.DataFrame(transferred["measures"])
    numbers = [*titles, *rows.COUNTED]
    two = st.column_config.NumberColumn(format="%.2f", width=controls.width(style))
    st.dataframe(
        measured[["sentence", "text", *numbers]].rename(
            columns={"sentence": "", "text": "Text", **titles, **rows.COUNTED}
        ),
        hide_index=True,
        row_height=controls.row_height(measured[["text"]], 300),
        column_config={"": st.column_config.TextColumn(width=110), "Text": st.column_config.TextColumn(width=300)}
        | dict.fromkeys(titles.values(), two)
        | {title: st.column_config.Column(width=controls.width(title)) for title in rows.COUNTED.values()},
        placeholder="",
        alt="Output, source and style, and both rebuilt: cosines in both latents, words shared, length, punctuation",
    )
    st.caption("Cosines are to the output, words shared with Source.")
    with st.expander(f"Candidates: {len(transferred['candidates'])}"):
        named = {SEMANTIC: titles["cosine"], loaded.second_latent: style, "text": "Text"}
        st.dataframe(
            pd.DataFrame(transferred["candidates"])[list(named)].rename(columns=named),
            hide_index=True,
            column_config=dict.fromkeys((titles["cosine"], style), two),
            alt="The candidates of the search, the one that keeps most of both latents first",
        )


def earlier(history: list[dict[str, Any]]) -> None:
    st.subheader("This session")
    shown = pd.DataFrame(history)[["output", "source", "style"]].rename(columns=str.capitalize)
    st.dataframe(shown, hide_index=True, alt=f"The last {REMEMBERED} results, newest first")
    nested = ("measures", "candidates")
    flat = pd.DataFrame([{**row, **{name: json.dumps(row[name]) for name in nested}} for row in history])
    exports.offer(f"bgt-transfers-{history[0]['model']}", flat)


def between(loaded: state.Loaded, is_open: bool) -> None:
    """The tab of interpolation: opens with two sentences that small models reconstruct."""
    known = [lang for lang in LANGS if lang in loaded.langs]
    if not known:
        st.info("The app has no example sentences in this model's languages.")
        return
    lang = known[0]
    ends = BETWEEN_ENDS.get(lang) or [text for (text,) in example_sentences((lang,)) if len(text) < 30][:2]
    langs = [lang, *(other for other in loaded.langs if other != lang)]
    walk = interpolation.form(loaded, ends, langs, is_open)
    if walk is not None:
        exports.offer(f"bgt-interpolation-{loaded.short}", walk.table)
    how_to_read(BETWEEN_HELP)
