"""Compare models on the same sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, markdown, resampling, rows, state, writing
from app.core.address import BOUND
from app.core.component import copy_link
from app.core.latents import chart, geometry, spaces
from app.core.latents.lines import TRANSLATIONS
from app.core.markdown import how_to_read, verbatim
from app.core.results import gather
from app.core.state import Loaded
from app.models import compute, pairs
from app.models.parts import differences, lang_of, text_of, two_sentences
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

MOST = 4  # models at once
COUNTS = [100, 300, 1_000]
WRITTEN = ("Can you help me?", "He is my friend.")
MAP_HEIGHT = 460  # pixels
HELP = """
- **The others are compared with the first model.** A difference is a model's score minus the first's.
- **Paired:** both models meet the same sentences, and the same 2,000 resamples of them, so a difference may be clear
  even where the intervals of the two scores overlap. An interval that holds zero says nothing either way.
- **Semantic latent:** the meaning of a sentence. Only this latent is compared; other encoders have only this one.
- **Translations found (P@1):** the share of sentences whose nearest sentence in the other language is their own
  translation. It depends on how many there are to choose from, so compare it only within this page.
- **Maps:** each model's own principal axes. Distances and shapes can be compared, left and right cannot.
"""


def page() -> None:
    st.title("Compare models")
    st.markdown("Compare models on the same sentences, and see whether their differences are more than chance.")
    models = chosen()
    if len(models) > 1:
        langs = compute.languages(models)
        if langs:
            VIEWS[controls.choice("Compare by", list(VIEWS), "by")](models, langs)
        else:
            st.info("These models have no language in common, so they can't be compared on the same sentences.")
    how_to_read(HELP)
    copy_link()


def chosen() -> list[Loaded]:
    """Let the user choose the models to compare, and open each; one that can't be opened is named and left out."""
    titles = state.titles()
    own = state.model().title
    second = next((title for title in titles if title != own), own)
    names = st.multiselect(
        "Models", titles, list(dict.fromkeys([own, second])), max_selections=MOST, key="models",
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
        st.info(
            "Choose two models or more." if len(titles) > 1 else "This app has one model; name more with `--model`."
        )
    return models


def side_by_side(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = text_of(langs)
        if text is None:
            return
        colour = st.selectbox(
            "Colour", rows.colours(text.langs), format_func=rows.COLOURS.__getitem__, key="colour", width=180, **BOUND
        )
        count = controls.count("At most", COUNTS, "few", 1)
    table = corpora.sentences(text, count)
    ids = set(table["id"])
    selection = [row for row in st.session_state.get("chosen", []) if row in ids]
    method = geometry.Method()
    fitted = [spaces.Spaces(spaces.space(model, table, SEMANTIC, method), {}) for model in models]
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
    vectors = [space.semantic.vectors for space in fitted]
    if len(table) > compute.NEIGHBOURS:
        same = [
            f"{compute.same_neighbours(vectors[0], other):.0%} with {verbatim(model.title)}"
            for model, other in zip(models[1:], vectors[1:], strict=True)
        ]
        title = verbatim(models[0].title)
        shared = " and ".join(same)
        st.caption(f"Of a sentence's {compute.NEIGHBOURS} nearest neighbours, {title} shares {shared}, on average.")
    if text.credit:
        st.caption(text.credit)
    listed = table[table["id"].isin(selection)] if selection else table
    titles = {"lang": "Language", "text": "Sentence", "translation": "Translation"}
    with st.expander(f"{len(listed):,} sentences", expanded=bool(selection)):
        st.dataframe(listed[list(titles)].rename(columns=titles), hide_index=True, alt="The sentences of the maps")


def one_map(
    number: int, model: Loaded, space: spaces.Space, colour: str, langs: Sequence[str], selection: Sequence[str]
) -> None:
    """The map of one of several models, told apart by `number`."""
    lines = [TRANSLATIONS] * (len(langs) > 1)
    draw = partial(chart.latent_map, {model.title: space.rows}, colour, langs, chosen=selection, lines=lines)
    key = f"models_{model.title}"
    exports.chart(
        f"bgt-models-{model.short}",
        partial(draw, height=MAP_HEIGHT),
        f"Map of the semantic latent of {len(space.rows)} sentences in {model.title}; the table below lists them",
        key=key,
        on_select=partial(remember, key),
    )
    st.caption(f"PCA shows {space.projection.variance or 0:.0%} of the variance of {space.vectors.shape[1]:,} units.")
    name = f"bgt-models-{number + 1}-{model.short}"  # two models may have the same weights
    exports.offer(name, space.rows, draw, title="Export this map", caption=f"PCA, {model.name}")


def remember(key: str) -> None:
    """Select the points drawn around on one map, on all maps."""
    points = st.session_state[key]["selection"]["points"]
    st.session_state["chosen"] = [point["customdata"] for point in points if isinstance(point.get("customdata"), str)]


def retrieval(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = text_of(langs, 2)
        if text is None:
            return
        left = lang_of("From", text.langs, "cmp_from")
        right = lang_of("Into", [lang for lang in text.langs if lang != left], "cmp_into")
    forward, backward = compute.translations_found(models, text, (left, right))
    count = len(forward[models[0].title])
    both = {name: (forward[name].astype(float) + backward[name]) / 2 for name in forward}
    st.caption(f"{count:,} pairs; by chance {100 / count:.1f}% would be found. {text.credit}")
    left_name, right_name = rows.language_name(left), rows.language_name(right)
    ways = (
        ("Both ways", both),
        (f"{left_name} finds {right_name}", forward),
        (f"{right_name} finds {left_name}", backward),
    )
    for title, hits in ways:
        differences(compute.beside_first(resampling.shares(hits)), f"{title}, %", title.replace(" ", "-").lower())


def written(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    writers = [model for model in models if not model.cannot_write]
    for model in models:
        if model.cannot_write:
            st.caption(f"{verbatim(model.title)}: {model.cannot_write}")
    if not writers:
        st.info("None of these models writes sentences.")
        return
    keys = {"cmp_source": "Meaning of", "cmp_style": "Style of"}
    (source, source_lang), (style, lang) = two_sentences(keys, WRITTEN, langs, writing.MAX_CHARACTERS)
    if not (source.strip() and style.strip()):
        st.caption("Type a sentence for its meaning and one for its style.")
        return
    with st.spinner("Writing"):
        transferred = [
            writing.transfer(model, source, style, lang, writing.DEFAULT_SEARCH, source_lang=source_lang)
            for model in writers
        ]
    outputs = [each["output"] for each in transferred]
    judged = compute.similarities(models, pd.DataFrame({"left": source, "right": outputs}), (source_lang, lang))
    table = pd.DataFrame({"Written by": [model.title for model in writers], "Output": outputs})
    table["Changed"] = [each["changed"] or "nothing" for each in transferred]
    table = table.assign(**{f"Cosine to the source, by {title}": scores for title, scores in judged.items()})
    shown = table.map(lambda cell: cell if isinstance(cell, str) else f"{cell:z.2f}")
    markdown.table(shown, "The text of each model, and its similarity to the source by each model")
    st.caption(
        "Changed: what an output lost of the source or added to it, by rules. Each model judges all outputs by its "
        "cosine; it may favour its own."
    )
    exports.offer("bgt-models-written", table, latex=table)


def probes(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    results = gather.all_results()
    first, *others = models
    for other in others:
        table = compute.probe_differences(results, first.title, other.title, SEMANTIC)
        st.subheader(verbatim(f"{other.title} minus {first.title}"), anchor=False)
        if table.empty:
            st.info(
                "No task was probed on the same sentences in both: run one for each on the page of probes, or name "
                "results of `bgt-probe` with `--results`."
            )
            continue
        titles = {"task": "Task", "lang": "Language", "points": "Points", "low": "from", "high": "to"}
        titles |= {"first": f"{first.title}, %", "second": f"{other.title}, %", "interval": "Interval"}
        shown = table[list(titles)].rename(columns=titles).round(1)
        shown = shown.assign(Points=shown["Points"] + 0.0)  # no -0.0
        number = st.column_config.NumberColumn
        columns = dict.fromkeys(("Points", "from", "to"), number(format="%+.1f", width=controls.width("Points")))
        columns |= dict.fromkeys(shown.columns[5:7], number(format="%.1f"))
        least = {"Task": 146, "Language": 0}
        widths = {name: st.column_config.Column(width=controls.width(name, px)) for name, px in least.items()}
        st.dataframe(shown, hide_index=True, column_config=widths | columns,
                     alt="Accuracy of probes on the semantic latents of both models, and the difference")  # fmt: skip
        exports.offer(f"bgt-models-probes-{other.short}", table, latex=shown)
    st.caption(
        "Accuracy on the semantic latent. The interval is paired if the predictions for each sentence were kept; "
        "otherwise it follows from the intervals of the two accuracies, and is wider."
    )


VIEWS: dict[str, Callable[[Sequence[Loaded], Sequence[str]], None]] = {
    "Maps": side_by_side,
    "Similarity": pairs.similarity,
    "Disagreements": pairs.disagreements,
    "Translations found": retrieval,
    "Writing": written,
    "Probes": probes,
}
