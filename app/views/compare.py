"""Does the separation hold in every language?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.navigation.page import Page

from app import exports, languages, probe_results, rows, state
from app.address import BOUND
from app.charts import scores, theme
from app.views.browse import chosen_models
from app.views.distance import trends
from app.views.probing import all_results
from bgt_core.contracts import LANGUAGE

KINDS = ("Difference", "Accuracy", "Compression")
CLAIM = (
    "Accuracy of a probe on the semantic latent minus that on the {second} latent, with 95% intervals. The claim to "
    "test is a pattern of signs: right of zero where a task is about meaning, left of it where it is about length, "
    "punctuation or grammatical gender. An interval that holds zero says nothing either way."
)
PAPER = (
    " Grey marks are the paper's, of larger models and other sentences, without intervals: compare signs, not values."
)


def page(probes: Page) -> None:
    loaded = state.model()
    st.title("Compare languages")
    results = all_results()
    gaps = languages.with_paper(results.gaps)
    second = loaded.second_latent or LANGUAGE
    st.markdown(f"Does the semantic latent keep meaning, and the {second} latent manner, in every language and model?")
    if len(loaded.langs) == 1:
        st.caption(f"This model reads one language, {loaded.languages}: there is no other of its own to compare.")
    if loaded.title not in set(gaps["model"]):
        empty(loaded, probes)
    if gaps.empty:
        return
    gaps = gaps[gaps["model"].isin(chosen_models(gaps, loaded))]
    latents = languages.of_latents(results.scores)
    latents = latents[latents["model"].isin(gaps["model"])]
    kind = st.segmented_control("Show", KINDS, default=KINDS[0], required=True, key="gaps", **BOUND)
    note = PAPER if gaps["paper_gap"].notna().any() else ""
    if kind == KINDS[0]:
        difference(gaps, note)
    elif kind == KINDS[1]:
        accuracy(latents, gaps, note)
    else:
        compression(latents, loaded)
    of_language = gaps[gaps["second"] == LANGUAGE]
    if not of_language.empty:
        trends(of_language)


def empty(loaded: state.Loaded, probes: Page) -> None:
    if not loaded.second_latent:
        st.info(
            "This model has one latent, so it has nothing to compare. Choose another model at the side.",
            icon=":material/translate:",
        )
        return
    st.info(
        "No results of both latents of this model yet: nothing is computed on this page.", icon=":material/translate:"
    )
    st.page_link(probes, label="Run a small probe", icon=":material/science:")
    st.markdown("Or probe each model from the command line, and start the app with `--results FOLDER`:")
    lines = [probe_results.COMMAND.format(lang=lang, model="PATH") for lang in loaded.langs]
    st.code("\n".join(lines), language="sh")


def difference(gaps: pd.DataFrame, note: str) -> None:
    second = scores.second_latents(gaps)
    figure = partial(scores.gap_dots, gaps, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Semantic minus {second} accuracy in points, with intervals, {gaps['task'].nunique()} tasks; "
        "the table has the same",
        config=theme.tools("bgt-separation"),
    )
    st.caption(CLAIM.format(second=second) + note)
    cells = [f"{row.points:+.1f} [{row.ci_low:+.1f}, {row.ci_high:+.1f}]" for row in gaps.itertuples()]
    shown = table(gaps.assign(cell=cells, paper=gaps["paper_gap"]), f"Semantic minus {second} in points", "{:+.1f}")
    exports.offer("bgt-separation", gaps, figure, shown)


def accuracy(latents: pd.DataFrame, gaps: pd.DataFrame, note: str) -> None:
    def figure(theme: str) -> go.Figure:
        return scores.paper_dots(scores.probe_dots(latents, theme), gaps)

    st.plotly_chart(
        figure(state.theme()),
        alt=f"Accuracy of both latents with intervals, {latents['task'].nunique()} tasks; the table has the same",
        config=theme.tools("bgt-accuracies"),
    )
    st.caption("Test accuracy of a probe on each latent, with 95% intervals." + note)
    keys = ["model", "lang", "task", "mark"]
    paper = gaps.melt(keys, ["paper_semantic", "paper_language"], "latent", "paper")
    paper["latent"] = paper["latent"].str.removeprefix("paper_")
    cells = [
        f"{100 * row.accuracy:.1f} [{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]" for row in latents.itertuples()
    ]
    shown = table(
        latents.assign(cell=cells).merge(paper, "left", [*keys, "latent"]),
        "Accuracy of each latent in percent",
        "{:.1f}",
    )
    exports.offer("bgt-accuracies", latents, figure, shown)


def compression(latents: pd.DataFrame, loaded: state.Loaded) -> None:
    latents = latents.dropna(subset=["compression"])
    if latents.empty:
        st.info("None of these results has a codelength; it is measured on request:")
        command = probe_results.COMMAND.format(lang=loaded.langs[0], model="PATH")
        st.code(command.replace(" --json", " --mdl --json"), language="sh")
        return
    figure = partial(scores.probe_dots, latents, by="compression", theme=state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Compression of the labels by each latent, {latents['task'].nunique()} tasks; the table has the same",
        config=theme.tools("bgt-compression"),
    )
    st.caption(
        "How many times shorter the labels become for somebody who reads the latent while learning; 1: nothing usable."
    )
    cells = [f"{value:.2f}" for value in latents["compression"]]
    shown = table(latents.assign(cell=cells, paper=None), "Compression by each latent", "")
    exports.offer("bgt-compression", latents, figure, shown)


def table(cells: pd.DataFrame, what: str, form: str) -> pd.DataFrame:
    """A row per task, a column per language and model. What was not run says so; the paper's numbers, written in
    `form`, are beside it in grey."""
    keys = [name for name in ("task", "latent") if name in cells]
    titles = [
        f"{rows.language_name(row.lang)} · {row.model}" + (f" · {row.mark}" if row.mark else "")
        for row in cells.itertuples()
    ]
    published = ["" if pd.isna(value) else form.format(value) for value in cells["paper"]]
    cells = cells.assign(title=titles, published=published)
    own, paper = (
        cells.pivot_table(values, keys, "title", aggfunc="last", sort=False) for values in ("cell", "published")
    )
    paper = paper.fillna("").loc[:, lambda table: (table != "").any()].add_suffix(", paper")
    shown = own.fillna("not run").join(paper)
    shown = shown[[name for title in dict.fromkeys(titles) for name in (title, f"{title}, paper") if name in shown]]
    shown = shown.reset_index().rename(columns={"task": "Task", "latent": "Latent"}).rename_axis(columns=None)
    grey = f"color: {theme.SOFT[state.theme()]}"
    styled = shown.style.map(lambda cell: grey if cell == "not run" else "").map(lambda _: grey, subset=[*paper])
    st.table(styled, border="horizontal", hide_index=True, alt=f"{what}, with its interval, one row per task")
    return shown
