"""The page that generates each of several meanings in each of several styles, and changes a style gradually."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, display, exports, inventory, results, rows, state
from app.core.address import BOUND, copy_link, go_to
from app.core.display import NOTES, failing, latent_colour, square, verbatim
from app.core.inventory import ParallelText
from app.core.state import BY_DIGEST, Loaded, candidates, embed, write
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.properties import PROPERTIES
from bgt_core.errors import DataError
from bgt_core.evaluation.facts import checks, differences
from bgt_core.vectors.maps import Directions, directions

FITTED_ON = 2_000  # maximum number of translations to which directions of style are fitted
TITLES = tomllib.loads(Path(__file__).with_name("directions.toml").read_text("utf-8"))  # style property -> title
MISSING = {"contraction": "words that can be contracted or written out"}
FAR = {"question", "vous", "Sie", "usted", "siz", "polite", "short"}  # values to which a positive step leads
STEP = 2.0  # length of a slider's step; longer steps lead to latents unlike those of real sentences
AS_IT_IS = "as it is"
FAILED = "This small model cannot reconstruct this sentence: it writes “{}” ({}). Other outputs will be no better."
MOST = 5  # maximum number of rows and of columns of the grid
EXAMPLES = tomllib.loads(Path(__file__).with_name("examples.toml").read_text("utf-8"))


@st.fragment
def page(loaded: state.Loaded) -> None:
    """Generate the user's sentence in the style of another one, in a grid of styles, and with gradual changes."""
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            usual, example = ("en", controls.EXAMPLE) if "en" in loaded.langs else (loaded.langs[0], "")
            keys, first = ("sentence", "language"), lambda lang: "".join(defaults(lang)[0][:1])
            source, meaning_lang = controls.sentence(loaded, "Meaning", keys, usual, first, example)
            meanings = lines("More meanings", source, defaults(meaning_lang)[0][1:], f"meanings_{meaning_lang}")
        with right:
            usual = "fr" if "fr" in loaded.langs else loaded.langs[0]  # French sentences differ most in style
            keys, first = ("other", "other_language"), lambda lang: "".join(defaults(lang)[1][:1])
            style, lang = controls.sentence(loaded, "Style", keys, usual, first)
            styles = lines("More styles", style, defaults(lang)[1][1:], f"styles_{lang}")
    if not (meanings and styles):
        st.warning("Type at least one sentence for a meaning and one for a style.", icon=":material/edit:")
        return
    for text, text_lang in (*((text, meaning_lang) for text in meanings[1:]), *((text, lang) for text in styles[1:])):
        controls.warn(loaded, [text], text_lang, f"“{verbatim(text)}”")
    for model in filter(None, (loaded, state.second())):
        controls.model_title(model)
        if why := model.cannot_write or ("" if {meaning_lang, lang} <= {*model.langs} else f"It reads {model.reads}."):
            st.caption(why)
            continue
        with failing():
            grid(model, meanings, meaning_lang, styles, lang)
    if source:
        in_directions(loaded, source[: state.MAX_CHARACTERS], meaning_lang)
    copy_link()


def defaults(lang: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the grid's default sentences for meaning and style: from `EXAMPLES`, or else short examples. Styles are
    examples of each form of address or politeness, if the language has them."""
    if lang in EXAMPLES:
        return EXAMPLES[lang]["meanings"], EXAMPLES[lang]["styles"]
    texts = [text for (text,) in example_sentences((lang,))] if lang in LANGS else []
    styles = [text for closing in (".", "?") for text in rows.shortest(texts, lang, closing).values()]
    short = [text for text in texts if len(text) < 30]
    return short[:3], styles or short[3:6]


def lines(title: str, first: str, default: Sequence[str], key: str) -> list[str]:
    """Ask for sentences, one per line. Return `first` and the different lines; warn if there are more than `MOST`."""
    text = st.text_area(f"{title}, one per line", "\n".join(default), key=key, height=90, **BOUND)
    stripped = (line.strip()[: state.MAX_CHARACTERS] for line in (first, *(text or "").splitlines()))
    sentences = list(dict.fromkeys(filter(None, stripped)))
    if len(sentences) > MOST:
        st.caption(f"A grid has at most {MOST} rows and columns: only the first {MOST} sentences are used.")
    return sentences[:MOST]


def grid(loaded: Loaded, meanings: Sequence[str], meaning_lang: str, styles: Sequence[str], lang: str) -> None:
    """Show a grid of generated sentences: each meaning in each style."""
    table, rebuilt = written_grid(loaded, meanings, meaning_lang, styles, lang)
    notices = {
        meaning: FAILED.format(again, changed)
        for meaning, again in zip(meanings, rebuilt, strict=True)
        if (changed := differences(checks(meaning, meaning_lang, again, meaning_lang)))
    }
    second = loaded.second_latent
    st.html(f"Cosine {square(SEMANTIC)} to the row's semantic latent, {square(second)} to the column's {second} latent")
    st.html(html(table, notices, second, display.current_theme()))
    controls.keep(dict(zip(table["text"], table["meaning"], strict=True)), lang, meaning_lang, loaded.short)
    cells = table.pivot(index="meaning", columns="style", values="text").loc[meanings, styles]
    latex = cells.reset_index(allow_duplicates=True)  # a style sentence may be the word "meaning", a column name
    exports.offer(f"bgt-grid-{loaded.short}", table.rename(columns={"second": second}), latex=latex)


def in_directions(loaded: Loaded, source: str, lang: str) -> None:
    """Turn a sentence into a question, or make it more formal or contracted, by moving its second latent."""
    st.subheader("In a direction")
    controls.model_title(loaded)
    texts = inventory.texts_in(inventory.read().texts, loaded.langs)
    name = next((name for name, text in texts.items() if lang in text.langs), None)
    if name is None:
        st.info("Directions are learnt from sentences. Start the app with `--data` and a file in this language.")
        return
    st.markdown(NOTES["sliders"].format(loaded.second_latent, verbatim(source)))
    with failing():
        fitted, ends = fitted_directions(loaded, texts[name], lang)
        written = both_ends(loaded, fitted, source, lang)
        moving = {of: ends[of] for of, both in written.items() if {*both} != {AS_IT_IS}}
        sliders(loaded, fitted, source, lang, moving)
        for of in [of for of in fitted.names if of not in moving]:
            missing = f"the sentence has no {MISSING.get(of, rows.STYLES.get(of, 'closing mark').lower())}"
            why = "the model writes the same sentence at both ends" if of in written else missing
            st.caption(f"No slider for *{TITLES[of]}*: {why}.")
        if moving:
            cells = [(TITLES[of], *map("{}: {}".format, ends[of], written[of])) for of in moving]
            table = pd.DataFrame(cells, columns=["Direction", "To the left", "To the right"])
            display.table(table, "The sentence generated at both ends of every direction")
            exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)
    there = {"star": source, "star_lang": lang, "data": name, "maps": loaded.second_latent}
    go_to("maps", "Drag it on the map", "scatter_plot", **there)
    if texts[name].credit:
        st.caption(f"Directions were found on real text. {texts[name].credit}")


@st.fragment
def sliders(loaded: Loaded, fitted: Directions, source: str, lang: str, moving: Mapping[str, tuple[str, str]]) -> None:
    """Show a slider for each direction that changes the sentence, with the accuracies of probes of its property."""
    if not moving:
        return
    steps, probes = np.zeros(len(fitted.names)), results.accuracies(Path(loaded.info["folder"]), lang)
    for column, (name, (low, high)) in zip(st.columns(len(moving)), moving.items(), strict=True):
        at, ends = fitted.names.index(name), {low: -STEP, AS_IT_IS: 0.0, high: STEP}
        known = f"correlation {fitted.read[at]:.2f} on held-out sentences"
        if name in probes.index:
            shown = probes.loc[name, [loaded.second_latent, SEMANTIC, results.BEST]]
            known = "probe {:.0%}, semantic latent {:.0%}, best baseline {:.0%}".format(*shown)
        label = f"{TITLES[name]}: {low} to {high}"
        steps[at] = ends[column.select_slider(label, ends, AS_IT_IS, key=f"move_{name}_{lang}", **BOUND)]
        column.caption(known)
    with failing():
        (text,) = write_moved(loaded, fitted, source, lang, steps[None])
        st.html(f'<p class="written" style="font-size:1.4rem;margin:0">{escape(text) or "(nothing)"}</p>')
        if changed := differences(checks(source, lang, text, lang)):
            st.caption(f"✗ {verbatim(changed)}")
        controls.keep({text: source}, lang, lang, "direction")


@st.cache_data(max_entries=32, show_spinner="Writing", show_time=True, hash_funcs=BY_DIGEST)
def written_grid(
    loaded: Loaded, meanings: Sequence[str], meaning_lang: str, styles: Sequence[str], lang: str
) -> tuple[pd.DataFrame, list[str]]:
    """Generate every meaning in every style, a row per combination, grouped by meaning. Also reconstruct each meaning.

    The column `semantic` is the cosine between the semantic latents of the generated text and of the meaning. `second`
    is the cosine between the second latents of the generated text and of the style. `changed` describes the parts of
    the meaning that the generated text lost."""
    semantic, own = (embed(loaded, meanings, meaning_lang, latent) for latent in (SEMANTIC, loaded.second_latent))
    second = embed(loaded, styles, lang, loaded.second_latent)
    cells = np.repeat(semantic, len(styles), axis=0), np.tile(second, (len(meanings), 1))
    count = len(cells[0])
    if meaning_lang == lang:  # one beam search generates the grid and the reconstructions
        ranked = candidates(loaded, np.concatenate([cells[0], semantic]), np.concatenate([cells[1], own]), lang)
    else:
        ranked = [*candidates(loaded, *cells, lang), *candidates(loaded, semantic, own, meaning_lang)]
    best = [each[0] for each in ranked]
    table = pd.DataFrame({"meaning": np.repeat(meanings, len(styles)), "style": list(styles) * len(meanings)})
    table["text"] = [each.text for each in best[:count]]
    for column, latent in (("semantic", SEMANTIC), ("second", loaded.second_latent)):
        table[column] = [each.kept[latent] for each in best[:count]]
    outputs = table[["meaning", "text", "semantic"]].itertuples(index=False)
    compared = (state.verdicts(loaded, of, meaning_lang, text, lang, near) for of, text, near in outputs)
    table["changed"] = list(map(differences, compared))
    return table, [each.text for each in best[count:]]


@st.cache_resource(max_entries=8, show_spinner="Finding directions", hash_funcs=BY_DIGEST)
def fitted_directions(loaded: Loaded, text: ParallelText, lang: str) -> tuple[Directions, dict[str, tuple[str, str]]]:
    """Fit directions in the second latent along which style properties change. Also return each property's two values,
    such as ("tu", "vous"). Raises DataError if all sentences have the same values."""
    table = inventory.sentences(text, FITTED_ON)
    texts = table.loc[table["lang"] == lang, "text"].tolist()
    factors, ends = {}, {}
    for name in TITLES:
        values = [PROPERTIES[name].value(text, lang) for text in texts]
        common = [value for value, _ in Counter(filter(None, values)).most_common()]
        low = next((value for value in common if value not in FAR), "")
        high = next((value for value in common if value in FAR), "")
        if low and high:
            factors[name] = [(value in FAR) - (value not in {*FAR, ""}) for value in values]
            ends[name] = low, high
    if not ends:
        raise DataError("no directions: the sentences have neither questions nor any other property of style.")
    vectors = embed(loaded, texts, lang, loaded.second_latent)
    return directions(vectors, np.column_stack(list(factors.values())), tuple(factors)), ends


@st.cache_data(max_entries=64, show_spinner="Writing", hash_funcs=BY_DIGEST)
def both_ends(loaded: Loaded, _directions: Directions, source: str, lang: str) -> dict[str, tuple[str, str]]:
    """Return what is generated at both ends of each direction whose property the sentence shows, with what it lost."""
    can = [of for of in _directions.names if PROPERTIES[of].value(source, lang)]
    units = STEP * np.eye(len(_directions.names))[[of in can for of in _directions.names]]
    steps = np.vstack([0 * units.sum(0), -units, units])
    same, *moved = write_moved(loaded, _directions, source, lang, steps)
    cells = [AS_IT_IS] * len(moved)
    for at, text in enumerate(moved):
        lost = differences(checks(source, lang, text, lang))
        if text != same:
            cells[at] = f"{text} ✗ {lost}" if lost else text
    return {of: (cells[at], cells[at + len(can)]) for at, of in enumerate(can)}


@st.cache_data(max_entries=64, show_spinner="Writing", hash_funcs=BY_DIGEST)
def write_moved(loaded: Loaded, _directions: Directions, source: str, lang: str, steps: np.ndarray) -> list[str]:
    """Move a sentence's second latent along K directions, and generate a sentence for each row of `steps` (S, K)."""
    second = _directions.move(embed(loaded, [source], lang, loaded.second_latent), steps)
    semantic = np.repeat(embed(loaded, [source], lang, SEMANTIC), len(second), axis=0)
    return write(loaded, semantic, second, lang)


def html(table: pd.DataFrame, notices: Mapping[str, str], second_latent: str, theme: str) -> str:
    """Return the grid as HTML: one row per meaning, with its warning if it has one, and one column per style."""
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
