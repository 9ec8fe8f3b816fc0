"""Compare models on the same sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, pairs, rows, startup, state, upload_dialog
from app.core.address import BOUND
from app.core.latents import chart, geometry, spaces
from app.core.markdown import failing, frame, verbatim
from app.core.startup import ParallelText
from app.core.state import Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of
from bgt_core.vectors.compare import unit

NEIGHBOURS = 10
SIDES = ("first", "second")  # of two models
MAX_PAIRS = 1_000  # searched; all against all is quadratic
MOST = 4  # models at once
COUNTS = [100, 300, 1_000]
MAP_HEIGHT = 460  # pixels
SHOWN = 20  # pairs
GAP = "Second minus first"


def page(loaded: Loaded) -> None:
    models = chosen(loaded)
    if len(models) < 2:
        return
    views: dict[str, Callable[[Sequence[Loaded], Sequence[str]], None]] = {
        "Maps": side_by_side,
        "Scored pairs": scored_pairs,
        "Disagreements": disagreements,
        "Translations found": retrieval,
    }
    langs = [lang for lang in models[0].langs if all(lang in model.langs for model in models)]
    if langs:
        views[controls.choice("Compare by", list(views), "by")](models, langs)
    else:
        st.info("These models have no language in common, so they can't be compared on the same sentences.")


def chosen(loaded: Loaded) -> list[Loaded]:
    """Let the user choose the models to compare, and open each; one that can't be opened is named and left out."""
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


def text_of(langs: Sequence[str], least: int = 1) -> startup.ParallelText | None:
    """Ask for sentences in at least that many of the languages; None, with a message, if the app has none."""
    texts = {name: text for name, text in corpora.readable(langs).items() if len(text.langs) >= least}
    if not texts:
        st.info(f"No {'translations' if least > 1 else 'sentences'} in {names_of(langs)}; give some with `--data`.")
        return None
    return texts[st.selectbox("Sentences", list(texts), key=f"cmp_text{least}", width=280, **BOUND)]


def names_of(langs: Sequence[str]) -> str:
    return ", ".join(map(rows.language_name, langs))


def lang_of(title: str, langs: Sequence[str], key: str) -> str:
    return st.selectbox(title, langs, format_func=rows.language_name, key=key, width=160, **BOUND)


def side_by_side(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = text_of(langs)
        if text is None:
            return
        colours, name = rows.colours(text.langs), rows.COLOURS.__getitem__
        colour = st.selectbox("Colour", colours, format_func=name, key="colour", width=180, **BOUND)
        count = controls.count("At most", COUNTS, "few", 1)
    table = corpora.sentences(text, count)
    ids = set(table["id"])
    selection = [row for row in st.session_state.get("chosen", []) if row in ids]
    fitted = [spaces.Spaces(spaces.space(model, table, SEMANTIC, geometry.Method()), {}) for model in models]
    columns = [column for _ in models[::2] for column in st.columns(2)]
    drawn = [spaces.coloured(space, colour).semantic for space in fitted]
    if colour == rows.CLUSTER:  # the same groups on every map
        of_first = drawn[0].rows[colour]
        drawn = [replace(space, rows=space.rows.assign(**{colour: of_first})) for space in drawn]
        st.caption(f"Clusters are those of {verbatim(models[0].title)}, on every map.")
    for number, (column, model, space) in enumerate(zip(columns, models, drawn, strict=False)):
        with column:
            one_map(number, model, space, colour, text.langs, selection)
    st.caption(
        "Each language has its own shape, and a line joins translations. Press the lasso above a map and draw around "
        "points: the same sentences light up on every map."
    )
    if selection:
        st.button("Clear the selection", on_click=lambda: st.session_state.update(chosen=[]))
    if len(table) > NEIGHBOURS:
        first, *others = (space.vectors for space in drawn)
        shares = (
            f"{same_neighbours(first, other):.0%} with {verbatim(model.title)}"
            for model, other in zip(models[1:], others, strict=True)
        )
        near = f"Of a sentence's {NEIGHBOURS} nearest neighbours"
        st.caption(f"{near}, {verbatim(models[0].title)} shares {' and '.join(shares)}, on average.")
    if text.credit:
        st.caption(text.credit)
    listed = table[table["id"].isin(selection)] if selection else table
    titles = {"lang": "Language", "text": "Sentence", "translation": "Translation"}
    with st.expander(f"{len(listed):,} sentences", expanded=bool(selection)):
        frame(listed[list(titles)].rename(columns=titles), "The sentences of the maps")


def one_map(
    number: int, model: Loaded, space: spaces.Space, colour: str, langs: Sequence[str], selection: Sequence[str]
) -> None:
    """The map of one of several models, told apart by `number`; points drawn around are selected on all maps."""
    key = f"models_{model.title}"

    def remember() -> None:
        points = (point.get("customdata") for point in st.session_state[key]["selection"]["points"])
        st.session_state["chosen"] = [row for row in points if isinstance(row, str)]

    lines = [chart.TRANSLATIONS] * (len(langs) > 1)
    draw = partial(chart.latent_map, {model.title: space.rows}, colour, langs, chosen=selection, lines=lines)
    exports.chart(
        f"bgt-models-{model.short}",
        partial(draw, height=MAP_HEIGHT),
        f"Map of the semantic latent of {len(space.rows)} sentences in {model.title}; the table below lists them",
        key=key,
        on_select=remember,
    )
    st.caption(f"PCA shows {space.projection.variance or 0:.0%} of the variance of {space.vectors.shape[1]:,} units.")
    name = f"bgt-models-{number + 1}-{model.short}"  # two models may have the same weights
    exports.offer(name, space.rows, draw, title="Export this map", caption=f"PCA, {model.name}")


def scored_pairs(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    """A file of pairs with scores: how well each model's cosines agree with them."""
    st.caption("Two columns of sentences, and one of scores that people gave.")
    uploaded = upload_dialog.choose_pairs(langs, "cmp_pairs")
    if uploaded is None:
        return
    _, table, of_pairs = uploaded
    with failing():
        scores = similarities(models, table, of_pairs)
        if "gold" not in table:
            st.info("Choose the column that holds people's scores.")
        else:
            st.caption(f"{len(table):,} pairs, read as {names_of(of_pairs)}.")
            result = pairs.correlations(scores, table["gold"].to_numpy(float))
            pairs.show_scores(result, "Pearson × 100", "bgt-models-sts")
        exports.offer("bgt-models-pairs", table.assign(**scores), title="Export the pairs")


def disagreements(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    """Pairs that one model finds much more alike than another does, and the words of one of them."""
    first, *others = models
    texts = corpora.readable(langs, 2)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = upload_dialog.choose_name(list(texts), "cmp_aligned", width=280, **BOUND)
        titles = [model.title for model in others]
        chosen = st.selectbox("The first model and", titles, width=280) if len(others) > 1 else titles[0]
    if name is None:
        st.info(f"No pairs of sentences in {names_of(langs)}. Upload some.")
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
    """Each model with its semantic latent, by its title."""
    return {model.title: (model, SEMANTIC) for model in models}


def retrieval(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = text_of(langs, 2)
        if text is None:
            return
        left = lang_of("From", text.langs, "cmp_from")
        right = lang_of("Into", [lang for lang in text.langs if lang != left], "cmp_into")
    forward, backward = translations_found(models, text, (left, right))
    count = len(forward[models[0].title])
    both = {name: (forward[name].astype(float) + backward[name]) / 2 for name in forward}
    st.caption(f"{count:,} pairs; by chance {100 / count:.1f}% would be found. {text.credit}")
    names = rows.language_name(left), rows.language_name(right)
    ways = {"Both ways": both, "{} finds {}".format(*names): forward, "{1} finds {0}".format(*names): backward}
    for title, hits in ways.items():
        pairs.show_scores(pairs.shares(hits), f"{title}, %", f"bgt-models-{title.replace(' ', '-').lower()}")


def similarities(models: Sequence[Loaded], pairs: pd.DataFrame, langs: tuple[str, str]) -> dict[str, np.ndarray]:
    """By model, the similarity in meaning of the two sides of each pair (left, right), (N,)."""
    scores = {}
    for model in models:
        left, right = (
            state.embed(model, pairs[side].tolist(), lang, SEMANTIC)
            for side, lang in zip(("left", "right"), langs, strict=True)
        )
        scores[model.title] = model.similarity_pairwise(left, right).astype(float)
    return scores


def ranked_pairs(models: Sequence[Loaded], text: ParallelText) -> tuple[pd.DataFrame, list[str]]:
    """The pairs of a text by how much two models disagree, the most first, and the languages of both sides.

    Columns left, right, and for each side of `SIDES` its similarity and its rank in percent; gap, of the ranks.
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
    """By model, whether each pair's left sentence finds its right one, and the right one its left, (N,) `hits` each."""
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


def same_neighbours(first: np.ndarray, second: np.ndarray) -> float:
    """The share of each row's 10 nearest rows by cosine that both matrices (N, D), (N, E) have in common."""
    count, near = min(NEIGHBOURS, len(first) - 1), []
    for vectors in (first, second):
        cosines = unit(vectors) @ unit(vectors).T
        np.fill_diagonal(cosines, -np.inf)  # without itself
        near.append(np.argpartition(-cosines, count - 1, axis=1)[:, :count])
    return float(np.mean([len(set(one) & set(two)) / count for one, two in zip(*near, strict=True)]))
