"""Does the separation hold in every language?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.navigation.page import Page

from app import exports, languages, results, rows, state
from app.charts import scores, theme
from app.views.probing import everything

KINDS = ("Difference", "Accuracy", "Compression")
CLAIM = (
    "Accuracy of a probe on the semantic latent minus that on the language latent, with 95% intervals. The claim to "
    "test is a pattern of signs: right of zero where a task is about meaning, left of it where it is about length, "
    "punctuation or grammatical gender. An interval that holds zero says nothing either way."
)
PAPER = (
    " Grey marks are the paper's, of larger models and other sentences, without intervals: compare signs, not values."
)


def page(probes: Page) -> None:
    loaded = state.model()
    st.title("Compare languages")
    st.markdown("Does the semantic latent keep meaning, and the language latent manner, in every language and model?")
    found = everything()
    gaps = languages.placed(found.gaps)
    if gaps.empty:
        empty(loaded, probes)
        return
    kind = st.segmented_control("Show", KINDS, default=KINDS[0], required=True, key="gaps", bind="query-params")
    told = PAPER if gaps["paper_gap"].notna().any() else ""
    if kind == KINDS[0]:
        difference(gaps, told)
    elif kind == KINDS[1]:
        accuracy(languages.both(found.scores), gaps, told)
    else:
        compression(languages.both(found.scores), loaded)
    distance(gaps)


def empty(loaded: state.Loaded, probes: Page) -> None:
    st.info("No results of both latents yet: nothing is computed on this page.", icon=":material/translate:")
    st.page_link(probes, label="Run a small probe", icon=":material/science:")
    st.markdown("Or probe each model from the command line, and start the app with `--results FOLDER`:")
    lines = [results.COMMAND.format(lang=lang, model="PATH") for lang in loaded.bgt.langs]
    st.code("\n".join(lines), language="sh")


def difference(gaps: pd.DataFrame, told: str) -> None:
    figure = partial(scores.gap_dots, gaps, state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Semantic minus language accuracy in points, with intervals, {gaps['task'].nunique()} tasks; "
        "the table has the same",
        config=theme.tools("bgt-separation"),
    )
    st.caption(CLAIM + told)
    cells = [f"{row.points:+.1f} [{row.ci_low:+.1f}, {row.ci_high:+.1f}]" for row in gaps.itertuples()]
    shown = table(gaps.assign(cell=cells, paper=gaps["paper_gap"]), "Semantic minus language in points", "{:+.1f}")
    exports.offer("bgt-separation", gaps, figure, shown)


def accuracy(both: pd.DataFrame, gaps: pd.DataFrame, told: str) -> None:
    def figure() -> object:
        return scores.paper_dots(scores.probe_dots(both, state.theme()), gaps)

    st.plotly_chart(
        figure(),
        alt=f"Accuracy of both latents with intervals, {both['task'].nunique()} tasks; the table has the same",
        config=theme.tools("bgt-accuracies"),
    )
    st.caption("Test accuracy of a probe on each latent, with 95% intervals." + told)
    keys = ["model", "lang", "task"]
    paper = gaps.melt(keys, ["paper_semantic", "paper_language"], "latent", "paper")
    paper["latent"] = paper["latent"].str.removeprefix("paper_")
    cells = [f"{100 * row.accuracy:.1f} [{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]" for row in both.itertuples()]
    shown = table(
        both.assign(cell=cells).merge(paper, "left", [*keys, "latent"]), "Accuracy of each latent in percent", "{:.1f}"
    )
    exports.offer("bgt-accuracies", both, figure, shown)


def compression(both: pd.DataFrame, loaded: state.Loaded) -> None:
    both = both.dropna(subset=["compression"])
    if both.empty:
        st.info("None of these results has a codelength; it is measured where it is asked for:")
        command = results.COMMAND.format(lang=loaded.bgt.langs[0], model="PATH")
        st.code(command.replace(" --json", " --mdl --json"), language="sh")
        return
    figure = partial(scores.probe_dots, both, state.theme(), "compression")
    st.plotly_chart(
        figure(),
        alt=f"Compression of the labels by each latent, {both['task'].nunique()} tasks; the table has the same",
        config=theme.tools("bgt-compression"),
    )
    st.caption("How many times shorter the labels become to who reads the latent while learning; 1 is nothing usable.")
    cells = [f"{value:.2f}" for value in both["compression"]]
    shown = table(both.assign(cell=cells, paper=None), "Compression by each latent", "")
    exports.offer("bgt-compression", both, figure, shown)


def table(cells: pd.DataFrame, what: str, paper: str) -> pd.DataFrame:
    """A row a task, a column a language and model; what was not run says so, and the paper's stand beside in grey."""
    keys = [name for name in ("task", "latent") if name in cells]
    titles = [f"{rows.name(row.lang)} · {row.model}" for row in cells.itertuples()]
    told = ["" if pd.isna(value) else paper.format(value) for value in cells["paper"]]
    cells = cells.assign(title=titles, told=told)
    own, beside = (cells.pivot_table(of, keys, "title", aggfunc="last", sort=False) for of in ("cell", "told"))
    beside = beside.fillna("").loc[:, lambda table: (table != "").any()].add_suffix(", paper")
    shown = own.fillna("not run").join(beside)
    shown = shown[[name for title in dict.fromkeys(titles) for name in (title, f"{title}, paper") if name in shown]]
    shown = shown.reset_index().rename(columns={"task": "Task", "latent": "Latent"}).rename_axis(columns=None)
    grey = f"color: {theme.SOFT[state.theme()]}"
    soft = shown.style.map(lambda cell: grey if cell == "not run" else "").map(lambda _: grey, subset=[*beside])
    st.table(soft, border="horizontal", hide_index=True, alt=f"{what}, with its interval, a row a task")
    return shown


def distance(gaps: pd.DataFrame) -> None:
    st.subheader("Distance to English")
    if gaps["other"].nunique() < 3:
        st.caption(
            f"A trend needs three languages, and five before it can be told from chance; "
            f"there {'is' if gaps['other'].nunique() == 1 else 'are'} {gaps['other'].nunique()}."
        )
        return
    by = st.segmented_control(
        "Distance", list(languages.DISTANCES), default="weeks", required=True, key="distance", bind="query-params",
        format_func={"weeks": "Weeks to learn", "paper": "The paper's order"}.get,
    )  # fmt: skip
    measure, title = languages.DISTANCES[by]
    figure = partial(scores.gap_by_distance, gaps, measure, title, state.theme())
    st.plotly_chart(
        figure(),
        alt="Separation of each task against the distance of the language to English; the table has the trends",
        config=theme.tools("bgt-distance"),
    )
    found = [
        {"Task": task, "Languages": ", ".join(trend.langs), "Pearson r": trend.pearson, "p": trend.pearson_p,
         "Spearman ρ": trend.spearman, "p (ρ)": trend.spearman_p}
        for task, trend in languages.trends(gaps, by).items()
    ]  # fmt: skip
    if found:
        shown = pd.DataFrame(found)
        two = st.column_config.NumberColumn(format="%.2f")
        st.dataframe(
            shown,
            hide_index=True,
            column_config=dict.fromkeys(("Pearson r", "p", "Spearman ρ", "p (ρ)"), two),
            alt="Correlation of separation and distance for each task, with p by permutation of the languages",
        )
        st.caption("p by permutation of the languages: with five of them none can be below 1/120.")
        exports.offer("bgt-distance", shown, figure, shown, "Export distance")
