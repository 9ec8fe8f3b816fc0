"""Generate text from sentences' meanings and others' styles: a grid of them, or one along directions of style.

Each tab is a function of the model and of whether the tab is open: fields are always drawn, so that they keep their
text, but only the open tab computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from app.core import controls, exports, markdown, startup, state, theme, writing
from app.core.address import BOUND
from app.core.component import copy_link
from app.core.markdown import failing, help_of, verbatim, written
from app.rewrite import compute
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.vectors.maps import Directions

REMEMBERED = 20  # grids of a session
MOST = 5  # rows and columns of a grid
MEANINGS_AND_STYLES = {
    "en": (
        ("You are late.", "Can you help me?", "We are going to the beach tomorrow."),
        ("I'm tired.", "I am tired.", "It's late!"),
    ),
    "fr": (
        ("Tu es en retard.", "Peux-tu m'aider ?", "Nous allons à la plage demain."),
        ("Vous avez raison.", "Tu as raison.", "On y va.", "Est-ce que tu viens ?", "C'est trop tard !"),
    ),
}
TO_MOVE = {"en": "I will go to the station tomorrow.", "fr": "Tu es fatigué."}


def page(loaded: state.Loaded) -> None:
    tabs = {"A grid": grid, "In a direction": in_a_direction}
    for tab, draw in zip(st.tabs([*tabs], key="how", **BOUND), tabs.values(), strict=True):
        with tab:
            view(draw, loaded, bool(tab.open))


@st.fragment
def view(draw: Callable[[state.Loaded, bool], None], loaded: state.Loaded, is_open: bool) -> None:
    """Draw a tab, and the link to it if it is open; what is done in a tab reruns only this."""
    draw(loaded, is_open)
    if is_open:
        copy_link()


def short_examples(lang: str) -> list[str]:
    return [text for (text,) in example_sentences((lang,)) if len(text) < 30]


def grid(loaded: state.Loaded, is_open: bool) -> None:
    """A grid of sentences, every one written by the model."""
    langs = loaded.langs
    with st.container(border=True):
        meaning_lang = lang = langs[0]
        if len(langs) > 1:
            with st.container(horizontal=True):
                meaning_lang = controls.language("Language of meanings", langs, "mlang")
                usual = "fr" if "fr" in langs else None  # it shows most
                lang = controls.language("Language of styles and output", langs, "glang", usual)
        sides = [("Meanings", meaning_lang, 0), ("Styles", lang, 1)]
        meanings, styles = (
            lines(place, f"{title}, one per line", defaults(of)[side], f"{title.lower()}_{of}")
            for place, (title, of, side) in zip(st.columns(2), sides, strict=True)
        )
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
        with failing(), st.spinner("Writing", show_time=True):
            grids[request] = compute.grid(loaded, meanings, meaning_lang, styles, lang)
        while len(grids) > REMEMBERED:
            del grids[next(iter(grids))]
    if request in grids:
        table, rebuilt = grids[request]
        pairs = zip(meanings, rebuilt, strict=True)
        notices = {meaning: compute.beyond(meaning, again, meaning_lang) for meaning, again in pairs}
        show_grid(loaded, table, notices, styles)
    help_of("rewrite-grid")


def show_grid(loaded: state.Loaded, table: pd.DataFrame, notices: dict[str, str], styles: Sequence[str]) -> None:
    second = loaded.second_latent
    st.html(compute.html(table, notices, second, theme.current()))
    st.html(
        f"{theme.square(SEMANTIC, theme.current())} cosine to the row's semantic latent &emsp; "
        f"{theme.square(second, theme.current())} cosine to the column's {second} latent"
    )
    exports.offer(
        f"bgt-grid-{loaded.short}",
        table.rename(columns={"second": second}),
        latex=compute.wide(table, styles),
    )


def defaults(lang: str) -> tuple[Sequence[str], Sequence[str]]:
    """Three meanings and three styles; short example sentences for languages without chosen ones."""
    if lang in MEANINGS_AND_STYLES or lang not in LANGS:
        return MEANINGS_AND_STYLES.get(lang, ((), ()))
    short = short_examples(lang)
    return short[:3], short[3:6]


def lines(place: st.delta_generator.DeltaGenerator, title: str, default: Sequence[str], key: str) -> list[str]:
    """The first different lines of a field, up to the limit of the grid, with a caption if it has more."""
    text = place.text_area(title, "\n".join(default), key=key, height=120, **BOUND)
    stripped = (line.strip()[: writing.MAX_CHARACTERS] for line in text.splitlines())
    sentences = list(dict.fromkeys(filter(None, stripped)))
    if len(sentences) > MOST:
        place.caption(f"A grid holds {MOST} by {MOST}; the first {MOST} lines are read.")
    return sentences[:MOST]


def in_a_direction(loaded: state.Loaded, is_open: bool) -> None:
    """A sentence made a question, more formal or contracted, by moving its style along a direction."""
    texts = startup.texts_in(startup.read().texts, loaded.langs).values()
    usable = [lang for lang in loaded.langs if any(lang in text.langs for text in texts)]
    if not usable:
        st.info(
            "Directions are learnt from sentences; start the app with a file in this model's languages, by `--data`."
        )
        return
    st.markdown(
        f"Each slider moves the **{loaded.second_latent} latent** in the direction in which real sentences become "
        "questions, more formal, or contracted. The semantic latent stays."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lang = controls.language("Language", usable, "dlang")
        source = st.text_input("Sentence", TO_MOVE.get(lang, ""), key=f"sentence_{lang}", width=420, **BOUND)
    if not source.strip():
        st.warning("Type a sentence to say in another way.", icon=":material/edit:")
        return
    source = source[: writing.MAX_CHARACTERS]
    text = next(text for text in texts if lang in text.langs)
    if not is_open:
        keys = [key for name in compute.TITLES if (key := f"move_{name}") in st.session_state]
        st.session_state.update({key: st.session_state[key] for key in keys})  # of sliders that are not drawn now
        return
    with failing():
        directions = compute.fitted_directions(loaded, text, lang)
        with st.spinner("Generating every step"):
            table = compute.every_step(loaded, directions, source, lang)
        moved = table.groupby("direction", sort=False)["text"].nunique() > 1
        sliders(loaded, directions, source, lang, moved[moved].index.tolist())
        steps(loaded, directions, table, moved, lang)
        if text.credit:
            st.caption(f"Directions were found on real text. {text.credit}")
    help_of("rewrite-direction")


@st.fragment
def sliders(loaded: state.Loaded, directions: Directions, source: str, lang: str, moving: Sequence[str]) -> None:
    """Show a slider for each direction in which the sentence moves; it generates a sentence at once, and reruns only
    this."""
    if not moving:
        return
    low, high = float(compute.STEPS[0]), float(compute.STEPS[-1])
    moves = dict.fromkeys(directions.names, 0.0)
    for column, name in zip(st.columns(len(moving)), moving, strict=True):
        moves[name] = column.slider(compute.TITLES[name], low, high, 0.0, 0.5, key=f"move_{name}", **BOUND)
    with failing(), st.spinner("Writing"):
        written(compute.write_moved(loaded, directions, source, lang, [list(moves.values())])[0])


def steps(loaded: state.Loaded, directions: Directions, table: pd.DataFrame, moved: pd.Series, lang: str) -> None:
    """List the sentence at every step of the directions in which it `moved`, and name the others."""
    st.subheader("Every direction, step by step")
    if not moved.all():
        still = " and ".join(compute.TITLES[name] for name in moved[~moved].index)
        st.caption(f"{still}: no effect on this sentence at any step.")
    shown = table[table["direction"].map(moved)].assign(direction=table["direction"].map(compute.TITLES))
    shown = shown.rename(columns={"direction": "Direction", "step": "Step", "text": "Written there"})
    markdown.table(shown, "The sentence generated at every step of every direction")
    read = (
        f"{compute.TITLES[name].lower()} {r:.2f}" for name, r in zip(directions.names, directions.read, strict=True)
    )
    st.caption(
        f"How well each can be read from held-out sentences, as a correlation: {', '.join(read)}. Far steps leave what "
        "the decoder was trained on: nonsense there is expected."
    )
    exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)
