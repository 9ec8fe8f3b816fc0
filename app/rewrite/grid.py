"""A tab: a grid of sentences, every one written by the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app.core import controls, exports, state, theme, writing
from app.core.address import BOUND
from app.core.markdown import how_to_read, problem, verbatim
from app.rewrite import chart, compute, decoding
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.errors import BgtError

MOST = 5  # rows, and columns
REMEMBERED = 20  # grids of a session
EXAMPLES = {
    "en": (
        ("You are late.", "Can you help me?", "We are going to the beach tomorrow."),
        ("I'm tired.", "I am tired.", "It's late!"),
    ),
    "fr": (
        ("Tu es en retard.", "Peux-tu m'aider ?", "Nous allons à la plage demain."),
        ("Vous avez raison.", "Tu as raison.", "On y va.", "Est-ce que tu viens ?", "C'est trop tard !"),
    ),
}
HELP = """
- **A row** keeps one meaning: its sentence's *semantic* latent. **A column** keeps one style: its sentence's second
  latent. Each cell is written by the model from the two, and from nothing else.
- **The two bars** are cosines of the written sentence: to the row's semantic latent, and to the column's second
  latent. The model judges its own output, and may miss a change of meaning.
- **✗** says what a sentence lost of its row's meaning, by rules: negation, numbers, names, the order of the words that
  both have, and a much longer or shorter text.
- **⚠** marks a meaning that the model cannot reconstruct from its own latents; expect its row to be no better.
- Of the eight candidates of the search, the one with the highest score is shown: semantic cosine + 0.5 × second
  latent's cosine + 0.3 × log-probability per token.
"""


def page(loaded: state.Loaded, is_open: bool) -> None:
    """Show the fields and the grid; it is generated only while its tab is open."""
    langs = loaded.langs
    with st.container(border=True):
        if len(langs) > 1:
            with st.container(horizontal=True):
                meaning_lang = controls.language("Language of meanings", langs, "mlang")
                usual = "fr" if "fr" in langs else None  # it shows most
                lang = controls.language("Language of styles and output", langs, "glang", usual)
        else:
            meaning_lang = lang = langs[0]
        left, right = st.columns(2)
        meanings = lines(left, "Meanings, one per line", defaults(meaning_lang)[0], f"meanings_{meaning_lang}")
        styles = lines(right, "Styles, one per line", defaults(lang)[1], f"styles_{lang}")
    if not (meanings and styles):
        st.warning("Type at least one sentence for a meaning and one for a style.", icon=":material/edit:")
        return
    for text, text_lang in (*((text, meaning_lang) for text in meanings), *((text, lang) for text in styles)):
        controls.warn(loaded, [text], text_lang, f"“{verbatim(text)}”")
    controls.switch(loaded, meanings, meaning_lang, "mlang", "The text of meanings", "meanings")
    controls.switch(loaded, styles, lang, "glang", "The text of styles", "styles")
    request = (loaded.digest, tuple(meanings), meaning_lang, tuple(styles), lang)
    grids = st.session_state.setdefault("grids", {})
    if request not in grids:
        if not is_open:
            return
        if decoding.stopped():
            st.caption("Stopped.")
            st.button("Write the grid", type="primary")
            return
        try:
            with decoding.progress() as report:
                grids[request] = compute.grid(loaded, meanings, meaning_lang, styles, lang, report=report)
        except BgtError as error:
            problem(error)
            return
        while len(grids) > REMEMBERED:
            del grids[next(iter(grids))]
    table, rebuilt = grids[request]
    pairs = zip(meanings, rebuilt, strict=True)
    notices = {meaning: compute.beyond(meaning, again, meaning_lang) for meaning, again in pairs}
    st.html(chart.html(table, notices, loaded.second_latent, theme.current()))
    second = loaded.second_latent
    st.html(
        f"{theme.square(SEMANTIC, theme.current())} cosine to the row's semantic latent &emsp; "
        f"{theme.square(second, theme.current())} cosine to the column's {second} latent"
    )
    exports.offer(
        f"bgt-grid-{loaded.short}",
        table.rename(columns={"second": loaded.second_latent}),
        partial(chart.figure, table, loaded.second_latent),
        latex=chart.wide(table, styles),
        caption=f"{loaded.name}, {loaded.short}; beam {writing.DEFAULT_SEARCH.size}, ranked by both cosines.",
    )
    how_to_read(HELP)


def defaults(lang: str) -> tuple[Sequence[str], Sequence[str]]:
    """Three meanings and three styles; short example sentences for languages without chosen ones."""
    if lang in EXAMPLES or lang not in LANGS:
        return EXAMPLES.get(lang, ((), ()))
    short = [text for (text,) in example_sentences((lang,)) if len(text) < 30]
    return short[:3], short[3:6]


def lines(place: st.delta_generator.DeltaGenerator, title: str, default: Sequence[str], key: str) -> list[str]:
    """The first different lines of a field, up to the limit of the grid, with a caption if it has more."""
    text = place.text_area(title, "\n".join(default), key=key, height=120, **BOUND)
    stripped = (line.strip()[: writing.MAX_CHARACTERS] for line in text.splitlines())
    sentences = list(dict.fromkeys(filter(None, stripped)))
    if len(sentences) > MOST:
        place.caption(f"A grid holds {MOST} by {MOST}; the first {MOST} lines are read.")
    return sentences[:MOST]
