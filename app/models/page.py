"""Compare models on the same sentences."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, exports, inventory, pairs, rows, state, uploads
from app.core.address import BOUND
from app.core.display import frame, verbatim
from app.core.state import BY_DIGEST, Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of

SIDES = ("first", "second")  # the two models of a comparison
MAX_PAIRS = 1_000  # maximum number of pairs in which translations are searched, because the time is quadratic
MOST = 4  # maximum number of models
SHOWN = 20  # number of pairs in the table
GAP = "Second minus first"


def page(loaded: Loaded) -> None:
    models = chosen(loaded)
    if len(models) < 2:
        return
    views: dict[str, Callable[[Sequence[Loaded], Sequence[str]], None]] = {
        "Disagreements": disagreements,
        "Translations found": retrieval,
    }
    langs = [lang for lang in models[0].langs if all(lang in model.langs for model in models)]
    if langs:
        views[controls.choice("Compare by", list(views), "by")](models, langs)
    else:
        st.info("These models have no language in common, so they can't be compared on the same sentences.")


def chosen(loaded: Loaded) -> list[Loaded]:
    """Let the user choose the models to compare, and open them. Show an error for a model that can't be opened."""
    titles = state.titles()
    second = next((title for title in titles if title != loaded.title), loaded.title)
    names = st.multiselect(
        "Models", titles, list(dict.fromkeys([loaded.title, second])), max_selections=MOST, key="models",
        help="The others are compared with the first. Name more with `--model` when the app is started.",
        **BOUND,
    )  # fmt: skip
    models = []
    for name in names:
        try:
            models.append(state.opened(name))
        except BgtError as error:
            st.error(verbatim(f"{name} can't be opened: {error}"), icon=":material/error:")
    if len(models) < 2:
        one = "This app has one model; name more with `--model`."
        st.info("Choose two models or more." if len(titles) > 1 else one)
    return models


def disagreements(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    """Show the pairs on whose similarity two models differ most, and the effect of each word of one pair."""
    first, *others = models
    texts = inventory.readable(langs, 2)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = uploads.choose_name(list(texts), "cmp_aligned", width=280, **BOUND)
        titles = [model.title for model in others]
        chosen = st.selectbox("The first model and", titles, width=280) if len(others) > 1 else titles[0]
    if name is None:
        st.info(f"No pairs of sentences in {', '.join(map(rows.language_name, langs))}. Upload some.")
        return
    both = [first, others[titles.index(chosen)]]
    (left, right, *_), text_langs = inventory.columns_of(texts[name], MAX_PAIRS)
    made = disagreement(dict(zip(SIDES, both, strict=True)), left, right, (text_langs[0], text_langs[1]))
    numbers = {f"{side} rank": 100 * ranks for side, ranks in zip(SIDES, made.ranks.T, strict=True)}
    numbers |= dict(zip(SIDES, made.similarities.T, strict=True))
    table = pd.DataFrame({"left": left, "right": right, **numbers, "gap": 100 * made.gaps}).iloc[made.order]
    st.caption(
        f"{len(table):,} pairs. A pair's rank is the percentage of other pairs that are less similar. Ranks can be "
        f"compared, although models use their scales differently. The largest gaps come first. {texts[name].credit}"
    )
    ranks = {f"{side} rank": model.title for side, model in zip(SIDES, both, strict=True)}
    shown = table.head(SHOWN)[["left", "right", *ranks, "gap"]]
    formats = dict.fromkeys(ranks.values(), "%.0f") | {GAP: "%+.0f"}
    event = frame(
        shown.rename(columns={"left": "Left", "right": "Right", **ranks, "gap": GAP}),
        "Pairs with the largest gaps between the ranks of both models",
        formats,
        {"Left": 270, "Right": 270} | {title: controls.width(title) for title in formats},
        row_height=controls.row_height(shown[["left", "right"]], 270),
        on_select="rerun", selection_mode="single-row", key="cmp_row",
    )  # fmt: skip
    exports.offer("bgt-models-disagreements", table, title="Export all pairs")
    row = table.iloc[next((at for at in event.selection.rows if at < len(table)), 0)]
    st.subheader("What each word adds", anchor=False)
    systems = {model.title: (model, SEMANTIC) for model in both}
    pairs.show_words(systems, pairs.Pair(row["left"], text_langs[0], row["right"], text_langs[1]))
    if len(shown) > 1:
        st.caption("Choose a row above to see the words of another pair.")


def retrieval(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    """Show how often each model finds the translation of a sentence."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        texts = {name: text for name, text in inventory.readable(langs).items() if len(text.langs) > 1}
        if not texts:
            st.info(f"No translations in {', '.join(map(rows.language_name, langs))}; give some with `--data`.")
            return
        text = texts[st.selectbox("Sentences", list(texts), key="cmp_text2", width=280, **BOUND)]
        left = controls.language("From", text.langs, "cmp_from")
        right = controls.language("Into", [lang for lang in text.langs if lang != left], "cmp_into")
    table = inventory.sentences(text, MAX_PAIRS)
    sides = [tuple(table.loc[table["lang"] == lang, "text"]) for lang in (left, right)]
    count = len(sides[0])
    both_ways = {model.title: translations_found(model, (left, right), *sides) for model in models}
    forward, backward = ({name: way[at] for name, way in both_ways.items()} for at in (0, 1))
    both = {name: (forward[name].astype(float) + backward[name]) / 2 for name in forward}
    st.caption(f"{count:,} pairs; by chance {100 / count:.1f}% would be found. {text.credit}")
    names = rows.language_name(left), rows.language_name(right)
    ways = {"Both ways": both, "{} finds {}".format(*names): forward, "{1} finds {0}".format(*names): backward}
    for title, hits in ways.items():
        pairs.show_scores(pairs.shares(hits), f"{title}, %", f"bgt-models-{title.replace(' ', '-').lower()}")


@st.cache_data(max_entries=32, show_spinner="Looking for translations", hash_funcs=BY_DIGEST)
def translations_found(
    model: Loaded, langs: tuple[str, str], left: Sequence[str], right: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the nearest right sentence of each left sentence is its translation, and vice versa: (N,) each."""
    system = System(model.title, model)
    of_left, of_right = (embed_distinct(system, side, lang) for side, lang in zip((left, right), langs, strict=True))
    return hits_of(of_left, of_right, model.similarity)
