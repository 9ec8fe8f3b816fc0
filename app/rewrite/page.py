"""Generate text in a grid of meanings and styles, or move one sentence along directions of style. The page draws the
fields of both tabs, so that they keep their text, but computes only the open tab."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, display, exports, inventory, rows, state
from app.core.address import BOUND, copy_link
from app.core.display import failing, help_of, latent_colour, verbatim, written
from app.core.inventory import ParallelText
from app.core.state import BY_DIGEST, Loaded, candidates, embed, write
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.properties import PROPERTIES
from bgt_core.evaluation.facts import checks, differences
from bgt_core.vectors.maps import Directions, directions

FITTED_ON = 2_000  # maximum number of translations from which directions are fitted
QUESTION = "question"
TITLES = {  # direction -> title: being a question, and properties of wording
    QUESTION: "More of a question", "address": "More formal", "politeness": "More polite",
    "contraction": "More contracted",
}  # fmt: skip
FAR = {"vous", "Sie", "usted", "siz", "polite", "short"}  # values of properties at the positive end of a direction
STEPS = (-4, -2, 0, 2, 4)
REMEMBERED = 20  # maximum number of grids that a session keeps
MOST = 5  # maximum number of rows and of columns of a grid
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
    """Draw a tab and, if it is open, the link to it. Actions in the tab rerun only this fragment."""
    draw(loaded, is_open)
    if is_open:
        copy_link()


def grid(loaded: state.Loaded, is_open: bool) -> None:
    """Show a grid of generated sentences."""
    langs = loaded.langs
    with st.container(border=True):
        meaning_lang = lang = langs[0]
        if len(langs) > 1:
            with st.container(horizontal=True):
                meaning_lang = controls.language("Language of meanings", langs, "mlang")
                usual = "fr" if "fr" in langs else None  # styles differ most in French
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
            grids[request] = written_grid(loaded, meanings, meaning_lang, styles, lang)
        while len(grids) > REMEMBERED:
            del grids[next(iter(grids))]
    if request in grids:
        table, rebuilt = grids[request]
        pairs = zip(meanings, rebuilt, strict=True)
        notices = {meaning: beyond(meaning, again, meaning_lang) for meaning, again in pairs}
        second, squares = loaded.second_latent, (SEMANTIC, loaded.second_latent)
        st.html(html(table, notices, second, display.current_theme()))
        of_row, of_column = (display.square(latent, display.current_theme()) for latent in squares)
        st.html(
            f"{of_row} cosine to the row's semantic latent &emsp; {of_column} cosine to the column's {second} latent"
        )
        cells = table.pivot(index="meaning", columns="style", values="text").loc[meanings, styles]
        latex = cells.reset_index(allow_duplicates=True)  # a style may be the word "meaning"
        exports.offer(f"bgt-grid-{loaded.short}", table.rename(columns={"second": second}), latex=latex)
    help_of("rewrite-grid")


def defaults(lang: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the default meanings and styles. If none are chosen for a language, use short example sentences."""
    if lang in MEANINGS_AND_STYLES or lang not in LANGS:
        return MEANINGS_AND_STYLES.get(lang, ((), ()))
    short = [text for (text,) in example_sentences((lang,)) if len(text) < 30]
    return short[:3], short[3:6]


def lines(place: st.delta_generator.DeltaGenerator, title: str, default: Sequence[str], key: str) -> list[str]:
    """Return the different lines of a field, up to the limit of the grid. Show a caption if the field has more."""
    text = place.text_area(title, "\n".join(default), key=key, height=120, **BOUND)
    stripped = (line.strip()[: state.MAX_CHARACTERS] for line in text.splitlines())
    sentences = list(dict.fromkeys(filter(None, stripped)))
    if len(sentences) > MOST:
        place.caption(f"A grid has at most {MOST} rows and columns: only the first {MOST} lines are used.")
    return sentences[:MOST]


def in_a_direction(loaded: state.Loaded, is_open: bool) -> None:
    """Turn a sentence into a question, or make it more formal or contracted, by moving its second latent."""
    texts = inventory.texts_in(inventory.read().texts, loaded.langs).values()
    usable = [lang for lang in loaded.langs if any(lang in text.langs for text in texts)]
    if not usable:
        st.info(
            "Directions are learnt from sentences. Start the app with `--data` and a file in a language of this model."
        )
        return
    st.markdown(
        f"Each slider moves the **{loaded.second_latent} latent** in the direction in which real sentences become "
        "questions, more formal, or contracted. The semantic latent does not change."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lang = controls.language("Language", usable, "dlang")
        source = st.text_input("Sentence", TO_MOVE.get(lang, ""), key=f"sentence_{lang}", width=420, **BOUND)
    if not source.strip():
        st.warning("Type a sentence to say in another way.", icon=":material/edit:")
        return
    source = source[: state.MAX_CHARACTERS]
    text = next(text for text in texts if lang in text.langs)
    if not is_open:
        keys = [key for name in TITLES if (key := f"move_{name}") in st.session_state]
        st.session_state.update({key: st.session_state[key] for key in keys})  # keep the values of hidden sliders
        return
    with failing():
        directions = fitted_directions(loaded, text, lang)
        with st.spinner("Generating every step"):
            table = every_step(loaded, directions, source, lang)
        moved = table.groupby("direction", sort=False)["text"].nunique() > 1
        sliders(loaded, directions, source, lang, moved[moved].index.tolist())
        steps(loaded, directions, table, moved, lang)
        if text.credit:
            st.caption(f"Directions were found on real text. {text.credit}")
    help_of("rewrite-direction")


@st.fragment
def sliders(loaded: state.Loaded, directions: Directions, source: str, lang: str, moving: Sequence[str]) -> None:
    """Show a slider for each direction that changes the sentence. Moving it reruns only this fragment."""
    if not moving:
        return
    low, high = float(STEPS[0]), float(STEPS[-1])
    moves = dict.fromkeys(directions.names, 0.0)
    for column, name in zip(st.columns(len(moving)), moving, strict=True):
        moves[name] = column.slider(TITLES[name], low, high, 0.0, 0.5, key=f"move_{name}", **BOUND)
    with failing(), st.spinner("Writing"):
        written(write_moved(loaded, directions, source, lang, [list(moves.values())])[0])


def steps(loaded: state.Loaded, directions: Directions, table: pd.DataFrame, moved: pd.Series, lang: str) -> None:
    """List the sentence at every step of the directions that change it (`moved`), and name the other directions."""
    st.subheader("Every direction, step by step")
    if not moved.all():
        still = " and ".join(TITLES[name] for name in moved[~moved].index)
        st.caption(f"{still}: no effect on this sentence at any step.")
    shown = table[table["direction"].map(moved)].assign(direction=table["direction"].map(TITLES))
    shown = shown.rename(columns={"direction": "Direction", "step": "Step", "text": "Written there"})
    display.table(shown, "The sentence generated at every step of every direction")
    read = (f"{TITLES[name].lower()} {r:.2f}" for name, r in zip(directions.names, directions.read, strict=True))
    st.caption(
        f"Correlation of the true and the predicted value on held-out sentences: {', '.join(read)}. At far steps, the "
        "latent is unlike those in training: expect nonsense there."
    )
    exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)


def beyond(text: str, rebuilt: str, lang: str) -> str:
    """Return a warning if the reconstruction of a sentence fails a check, else ""."""
    if not (changed := differences(checks(text, lang, rebuilt, lang))):
        return ""
    return (
        f"This small model cannot reconstruct this sentence: from its own latents it writes “{rebuilt}” ({changed}). "
        "Other outputs will be no better."
    )


def written_grid(
    loaded: Loaded, meanings: Sequence[str], meaning_lang: str, styles: Sequence[str], lang: str
) -> tuple[pd.DataFrame, list[str]]:
    """Generate every meaning in every style: one row per pair, grouped by meaning. Also reconstruct each meaning.

    The column `semantic` is the cosine of the semantic latents of the generated text and the meaning. `second` is the
    cosine of the second latents of the generated text and the style. `unchanged`, for comparison, is the cosine of the
    second latents of the meaning's own sentence and the style; NaN if these are in different languages. `changed`
    describes the parts of the meaning that the generated text lost.
    """
    semantic, own = (embed(loaded, meanings, meaning_lang, latent) for latent in (SEMANTIC, loaded.second_latent))
    second = embed(loaded, styles, lang, loaded.second_latent)
    cells = np.repeat(semantic, len(styles), axis=0), np.tile(second, (len(meanings), 1))
    count = len(cells[0])
    if meaning_lang == lang:  # one search generates the cells and the reconstructions
        ranked = candidates(loaded, np.concatenate([cells[0], semantic]), np.concatenate([cells[1], own]), lang)
        unchanged = loaded.similarity(own, second)
    else:
        ranked = [*candidates(loaded, *cells, lang), *candidates(loaded, semantic, own, meaning_lang)]
        unchanged = np.full((len(meanings), len(styles)), np.nan)
    best = [each[0] for each in ranked]
    table = pd.DataFrame({"meaning": np.repeat(meanings, len(styles)), "style": list(styles) * len(meanings)})
    table["text"] = [each.text for each in best[:count]]
    for column, latent in (("semantic", SEMANTIC), ("second", loaded.second_latent)):
        table[column] = [each.kept[latent] for each in best[:count]]
    table["unchanged"] = unchanged.ravel()
    pairs = zip(table["meaning"], table["text"], strict=True)
    table["changed"] = [differences(checks(meaning, meaning_lang, text, lang)) for meaning, text in pairs]
    return table, [each.text for each in best[count:]]


@st.cache_resource(max_entries=8, show_spinner="Finding directions", hash_funcs=BY_DIGEST)
def fitted_directions(loaded: Loaded, text: ParallelText, lang: str) -> Directions:
    """Fit directions of the second latent to sentences. Two steps turn a statement into a question."""
    table = inventory.sentences(text, FITTED_ON)
    table = table[table["lang"] == lang]
    factors = {QUESTION: np.where(table["mark"] == "question", 1, -1).tolist()}
    for name in set(rows.colours((lang,))) & set(TITLES):
        values = [PROPERTIES[name].value(sentence, lang) for sentence in table["text"]]
        factors[name] = [(value in FAR) - (value not in {*FAR, ""}) for value in values]
    varied = {name: factors[name] for name in TITLES if name in factors and len(set(factors[name])) > 1}
    vectors = embed(loaded, table["text"], lang, loaded.second_latent)
    return directions(vectors, np.column_stack(list(varied.values())), tuple(varied))


def write_moved(
    loaded: Loaded, directions: Directions, source: str, lang: str, steps: Sequence[Sequence[float]]
) -> list[str]:
    """Move the second latent of a sentence in K directions, and generate a sentence for each row of `steps` (S, K)."""
    second = directions.move(embed(loaded, [source], lang, loaded.second_latent), np.asarray(steps, dtype=float))
    semantic = np.repeat(embed(loaded, [source], lang, SEMANTIC), len(second), axis=0)
    return write(loaded, semantic, second, lang)


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs=BY_DIGEST)
def every_step(loaded: Loaded, _directions: Directions, source: str, lang: str) -> pd.DataFrame:
    """Move the second latent of a sentence to every step of each direction, and generate a sentence there."""
    moves = [(name, step) for name in _directions.names for step in STEPS]
    steps = [[step * (name == other) for other in _directions.names] for name, step in moves]
    texts = write_moved(loaded, _directions, source, lang, steps)
    return pd.DataFrame({"direction": [name for name, _ in moves], "step": [s for _, s in moves], "text": texts})


def html(table: pd.DataFrame, notices: Mapping[str, str], second_latent: str, theme: str) -> str:
    """Return the grid as HTML: one row per meaning, with its notice if it has one, and one column per style."""
    styles = list(dict.fromkeys(table["style"]))
    heads = "".join(f'<th scope="col">{escape(style)}</th>' for style in styles)
    lines = []
    for meaning, cells in table.groupby("meaning", sort=False):
        notice = f"<small>⚠ {escape(notices[meaning])}</small>" if notices.get(meaning) else ""
        lines.append(f'<tr><th scope="row">{escape(meaning)}{notice}</th>')
        for cell in cells.itertuples():
            kept = bar(cell.semantic, SEMANTIC, theme) + bar(cell.second, second_latent, theme)
            text = escape(cell.text) or "(nothing)"
            changed = f"<small>✗ {escape(cell.changed)}</small>" if cell.changed else ""
            lines.append(f'<td data-style="as “{escape(cell.style, quote=True)}”">{text}{kept}{changed}</td>')
        lines.append("</tr>")
    head = f'<thead><tr><th scope="col">Meaning ↓ Style →</th>{heads}</tr></thead>'
    return f'<table class="grid">{head}<tbody>{"".join(lines)}</tbody></table>'


def bar(cosine: float, latent: str, theme: str) -> str:
    """Return HTML that shows a cosine as a number, and as a bar in the colour of the latent."""
    width = round(100 * min(max(cosine, 0.0), 1.0))
    filled = f'<i style="width:{width}%;background:{latent_colour(latent, theme)}"></i>'
    return f'<div class="kept" title="{latent} cosine {cosine:z.2f}"><span>{cosine:z.2f}</span>{filled}</div>'
