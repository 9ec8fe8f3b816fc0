"""Generate text from one sentence's meaning and another's style: a grid of them, one of each, or along a direction.

Each tab is a function of the model and of whether the tab is open: fields are always drawn, so that they keep their
text, but only the open tab computes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

import bgt_core
from app.core import controls, exports, markdown, rows, startup, state, theme, writing
from app.core.address import BOUND, ONE_SENTENCE
from app.core.component import copy_link
from app.core.markdown import failing, frame, help_of, verbatim, written
from app.rewrite import compute
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.vectors.maps import Directions

SOURCE = "You are late."
STYLES = {"fr": "Comment allez-vous ?", "en": "It's late!"}  # the one that shows most comes first
REMEMBERED = 20  # results, and grids, of a session
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
ENDS = {"en": ("I love you.", "They live in Paris."), "fr": ("Je t'aime.", "Ils habitent à Paris.")}


def page(loaded: state.Loaded) -> None:
    tabs = {
        "A grid": grid,
        ONE_SENTENCE: one_sentence,
        "In a direction": in_a_direction,
        "Between two sentences": between,
    }
    for tab, draw in zip(st.tabs([*tabs], key="how", **BOUND), tabs.values(), strict=True):
        with tab:
            view(draw, loaded, bool(tab.open))


@st.fragment
def view(draw: Callable[[state.Loaded, bool], None], loaded: state.Loaded, is_open: bool) -> None:
    """Draw a tab, and the link to it if it is open; what is done in a tab reruns only this."""
    draw(loaded, is_open)
    if is_open:
        copy_link()


@contextmanager
def progress() -> Iterator[writing.Report]:
    """Show the progress of generation, beside a button that stops it.

    Each report talks to the browser. If a button was pressed meanwhile, or the browser has left, Streamlit ends the
    script there, and with it the search.
    """
    slot = st.empty()
    with slot.container(horizontal=True, vertical_alignment="center"):
        message = st.empty()
        st.button("Stop", key="stop", icon=":material/stop:")

    def report(done: int) -> None:
        message.caption(f"Writing, token {done + 1}")

    try:
        yield report
    finally:
        slot.empty()


def stopped() -> bool:
    """Whether a press of Stop started this run; the search must then not start again."""
    return bool(st.session_state.get("stop"))


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
        if stopped():
            st.caption("Stopped.")
            st.button("Write the grid", type="primary")
            return
        with failing(), progress() as report:
            grids[request] = compute.grid(loaded, meanings, meaning_lang, styles, lang, report=report)
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
        partial(compute.figure, table, second),
        latex=compute.wide(table, styles),
        caption=f"{loaded.name}, {loaded.short}; beam {writing.DEFAULT_SEARCH.size}, ranked by both cosines.",
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


def one_sentence(loaded: state.Loaded, is_open: bool) -> None:
    """The meaning of one sentence in the style of another; an example is generated when the tab is first opened."""
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
        search, seed, max_length = decoding()
    if not (source.strip() and style.strip()):
        st.warning("Type a sentence for its meaning and one for its style.", icon=":material/edit:")
        return
    if mix < 1 and source_lang != lang:
        st.caption("The mix needs source and style in the same language.")
    source = controls.bounded(source, writing.MAX_CHARACTERS, "Source")
    style = controls.bounded(style, writing.MAX_CHARACTERS, "Style")
    controls.warn(loaded, [source], source_lang, "Source", "source_lang")
    controls.warn(loaded, [style], lang, "Style", "lang")
    history = st.session_state.setdefault("history", [])
    if pressed or (is_open and not history and not stopped()):
        with failing(), progress() as report:
            transferred = writing.transfer(
                loaded, source, style, lang, search, source_lang=source_lang, mix=mix, seed=seed,
                max_length=max_length, report=report,
            )  # fmt: skip
            history.insert(0, transferred)
        del history[REMEMBERED:]
    settings = {"source": source, "source_lang": source_lang, "style": style, "lang": lang, "mix": mix}
    settings |= {"search": repr(search), "seed": seed, "max_length": max_length, "model": loaded.short}
    if history and settings.items() <= history[0].items():
        result(loaded, history[0])
    else:
        st.caption("Not written yet: press Generate.")
    if history:
        st.subheader("This session")
        shown = pd.DataFrame(history)[["output", "source", "style"]].rename(columns=str.capitalize)
        frame(shown, f"The last {REMEMBERED} results, newest first")
        nested = ("measures", "candidates")
        flat = pd.DataFrame([{**row, **{name: json.dumps(row[name]) for name in nested}} for row in history])
        exports.offer(f"bgt-transfers-{history[0]['model']}", flat)
    help_of("rewrite-sentence")


def decoding() -> tuple[bgt_core.Beam | bgt_core.Sample, int, int]:
    """Ask for the search, its seed, and the maximum number of tokens."""
    kind = controls.choice("Search", ["Beam", "Sample"], "search")
    left, middle, right = st.columns(3)
    limit = "No run of this many tokens twice; 0: no limit."
    ngram = middle.slider("Longest run of tokens that may not repeat", 0, 5, 3, key="ngram", help=limit, **BOUND)
    limit = "2 allows “very very”; 0: no limit."
    max_run = middle.slider("Same token in a row, at most", 0, 3, 1, key="run", help=limit, **BOUND)
    max_length = right.slider("Longest output, in tokens", 5, 100, writing.MAX_LENGTH, key="length", **BOUND)
    if kind == "Beam":
        size = left.slider("Beam size", 1, 8, 8, key="beam", help="1 is greedy search.", **BOUND)
        return bgt_core.Beam(size, ngram, max_run), 0, max_length
    temperature = left.slider("Temperature", 0.1, 2.0, 0.7, 0.1, key="temperature", **BOUND)
    seed = left.number_input("Seed", 0, 2**31 - 1, 0, key="seed", width=160, **BOUND)
    top_p = middle.slider("Top p", 0.1, 1.0, 0.9, 0.05, key="top_p", **BOUND)
    return bgt_core.Sample(temperature, top_p, ngram, max_run), seed, max_length


def result(loaded: state.Loaded, transferred: dict[str, Any]) -> None:
    st.subheader("Output")
    written(transferred["output"])
    if changed := transferred["changed"]:
        st.warning(f"Compared with the source: {verbatim(changed)}.", icon=":material/warning:")
    if notice := compute.beyond(transferred["source"], transferred["rebuilt"], transferred["source_lang"]):
        st.warning(verbatim(notice), icon=":material/warning:")
    cosines = ("Semantic cosine", f"{loaded.second_latent.capitalize()} cosine")
    titles = {"sentence": "", "text": "Text", **dict(zip(("cosine", "style"), cosines, strict=True))}
    titles |= {"shared": "Words shared", **rows.COUNTED}
    measured = pd.DataFrame(transferred["measures"])[[*titles]]
    wide = {title: controls.width(title) for title in rows.COUNTED.values()} | {"": 110, "Text": 300}
    frame(
        measured.rename(columns=titles),
        "Output, source and style, and both rebuilt: cosines in both latents, words shared, length, punctuation",
        dict.fromkeys((*cosines, titles["shared"]), "%.2f"),
        wide | dict.fromkeys((*cosines, titles["shared"]), controls.width(cosines[1])),
        row_height=controls.row_height(measured[["text"]], 300),
        placeholder="",
    )
    st.caption("Cosines are to the output, words shared with Source.")
    with st.expander(f"Candidates: {len(transferred['candidates'])}"):
        named = {**dict(zip((SEMANTIC, loaded.second_latent), cosines, strict=True)), "text": "Text"}
        frame(
            pd.DataFrame(transferred["candidates"])[list(named)].rename(columns=named),
            "The candidates of the search, the one that keeps most of both latents first",
            dict.fromkeys(cosines, "%.2f"),
            dict.fromkeys(cosines, controls.width(cosines[1])),
        )


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
        sliders(loaded, directions, source, lang)
        steps(loaded, directions, source, lang, text.credit)
    help_of("rewrite-direction")


@st.fragment
def sliders(loaded: state.Loaded, directions: Directions, source: str, lang: str) -> None:
    """Show one slider per direction; every move generates a sentence at once, and reruns only this."""
    moves = []
    low, high = float(compute.STEPS[0]), float(compute.STEPS[-1])
    for column, name in zip(st.columns(len(directions.names)), directions.names, strict=True):
        moves.append(column.slider(compute.TITLES[name], low, high, 0.0, 0.5, key=f"move_{name}", **BOUND))
    with failing(), st.spinner("Writing"):
        written(compute.write_moved(loaded, directions, source, lang, [moves])[0])


def steps(loaded: state.Loaded, directions: Directions, source: str, lang: str, credit: str) -> None:
    st.subheader("Every direction, step by step")
    with st.spinner("Generating every step"):
        table = compute.every_step(loaded, directions, source, lang)
    still = table.groupby("direction", sort=False)["text"].transform("nunique") == 1
    if still.any():
        unmoved = " and ".join(table.loc[still, "direction"].unique())
        st.caption(f"{unmoved}: no effect on this sentence at any step.")
    titles = {"direction": "Direction", "step": "Step", "text": "Written there"}
    shown = table.loc[~still, list(titles)].rename(columns=titles)
    markdown.table(shown, "The sentence generated at every step of every direction")
    names = [compute.TITLES[name].lower() for name in directions.names]
    read = (f"{name} {r:.2f}" for name, r in zip(names, directions.read, strict=True))
    st.caption(f"How well each can be read from held-out sentences, as a correlation: {', '.join(read)}.")
    st.caption("Far steps leave what the decoder was trained on: nonsense there is expected.")
    if credit:
        st.caption(f"Directions were found on real text. {credit}")
    exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)


def between(loaded: state.Loaded, is_open: bool) -> None:
    """Interpolation: opens with two sentences that small models reconstruct."""
    known = [lang for lang in LANGS if lang in loaded.langs]
    if not known:
        st.info("The app has no example sentences in this model's languages.")
        return
    lang = known[0]
    langs = [lang, *(other for other in loaded.langs if other != lang)]
    walk = writing.form(loaded, ENDS.get(lang) or short_examples(lang)[:2], langs, is_open)
    if walk is not None:
        exports.offer(f"bgt-interpolation-{loaded.short}", walk.table)
    help_of("rewrite-between")
