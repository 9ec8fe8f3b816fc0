"""Compare models on the same sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, pairs, rows, state, uploads
from app.core.address import BOUND
from app.core.markdown import frame, verbatim
from app.core.startup import ParallelText
from app.core.state import Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of

SIDES = ("first", "second")  # of a comparison of two models
MAX_PAIRS = 1_000  # maximum number for the search, whose time is quadratic
MOST = 4  # maximum number of models
SHOWN = 20  # number of pairs shown
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
    """Let the user choose the models to compare, and open them; show an error for one that can't be opened."""
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
    """Show the pairs whose similarity differs most between two models, and the effect of each word in one pair."""
    first, *others = models
    texts = corpora.readable(langs, 2)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = uploads.choose_name(list(texts), "cmp_aligned", width=280, **BOUND)
        titles = [model.title for model in others]
        chosen = st.selectbox("The first model and", titles, width=280) if len(others) > 1 else titles[0]
    if name is None:
        st.info(f"No pairs of sentences in {', '.join(map(rows.language_name, langs))}. Upload some.")
        return
    both = [first, others[titles.index(chosen)]]
    table, text_langs = ranked_pairs(both, texts[name])
    st.caption(
        f"{len(table):,} pairs. A pair's rank, in percent, is the share of the others that are less similar: models "
        f"use their scales differently. The largest gaps of both ranks come first. {texts[name].credit}"
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
    pairs.show_words(systems(both), pairs.Pair(row["left"], text_langs[0], row["right"], text_langs[1]))
    if len(shown) > 1:
        st.caption("Choose a row above to see the words of another pair.")


def systems(models: Sequence[Loaded]) -> dict[str, tuple[Loaded, str]]:
    """Return each model with its semantic latent, by its title."""
    return {model.title: (model, SEMANTIC) for model in models}


def retrieval(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        texts = {name: text for name, text in corpora.readable(langs).items() if len(text.langs) > 1}
        if not texts:
            st.info(f"No translations in {', '.join(map(rows.language_name, langs))}; give some with `--data`.")
            return
        text = texts[st.selectbox("Sentences", list(texts), key="cmp_text2", width=280, **BOUND)]
        left = controls.language("From", text.langs, "cmp_from")
        right = controls.language("Into", [lang for lang in text.langs if lang != left], "cmp_into")
    forward, backward = translations_found(models, text, (left, right))
    count = len(forward[models[0].title])
    both = {name: (forward[name].astype(float) + backward[name]) / 2 for name in forward}
    st.caption(f"{count:,} pairs; by chance {100 / count:.1f}% would be found. {text.credit}")
    names = rows.language_name(left), rows.language_name(right)
    ways = {"Both ways": both, "{} finds {}".format(*names): forward, "{1} finds {0}".format(*names): backward}
    for title, hits in ways.items():
        pairs.show_scores(pairs.shares(hits), f"{title}, %", f"bgt-models-{title.replace(' ', '-').lower()}")


def ranked_pairs(models: Sequence[Loaded], text: ParallelText) -> tuple[pd.DataFrame, list[str]]:
    """Return the pairs of a text by the disagreement of two models, largest first, and the languages of both sides.

    Columns: left, right; for each of `SIDES` its similarity and its rank in percent; gap, the difference of ranks.
    """
    (left, right, *_), langs = corpora.columns_of(text, MAX_PAIRS)
    encoders = dict(zip(SIDES, models, strict=True))
    made = disagreement(encoders, left, right, (langs[0], langs[1]))
    numbers = {f"{side} rank": 100 * ranks for side, ranks in zip(SIDES, made.ranks.T, strict=True)}
    numbers |= dict(zip(SIDES, made.similarities.T, strict=True))
    table = pd.DataFrame({"left": left, "right": right, **numbers, "gap": 100 * made.gaps})
    return table.iloc[made.order], langs


def translations_found(
    models: Sequence[Loaded], text: ParallelText, langs: tuple[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return by model, for each pair, whether left finds right, and whether right finds left: `hits` (N,) each."""
    table = corpora.sentences(text, MAX_PAIRS)
    left, right = (tuple(table.loc[table["lang"] == lang, "text"]) for lang in langs)
    hits = [_found(model.digest, state.content([*left, *right]), langs, left, right, model) for model in models]
    names = [model.title for model in models]
    forward, backward = (dict(zip(names, way, strict=True)) for way in zip(*hits, strict=True))
    return forward, backward


@st.cache_data(max_entries=32, show_spinner="Looking for translations")
def _found(
    digest: str, content: str, langs: tuple[str, str], _left: Sequence[str], _right: Sequence[str], _model: Loaded
) -> tuple[np.ndarray, np.ndarray]:
    system = System(_model.title, _model)
    left, right = (embed_distinct(system, side, lang) for side, lang in zip((_left, _right), langs, strict=True))
    return hits_of(left, right, _model.similarity)
