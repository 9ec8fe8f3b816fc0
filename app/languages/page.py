"""The separation of the two latents, language by language, beside the paper's and against the distance to English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app.core import controls, exports, rows, state, theme
from app.core.address import BOUND, go_to
from app.core.component import copy_link
from app.core.markdown import verbatim
from app.core.results import gather, task_names
from app.core.results.reading import nats, p_value, provenance
from app.languages import chart
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from probes.results.languages import (
    FSI_WEEKS,
    PAPER_ORDER,
    URIEL_SYNTAX,
    LanguageGap,
    Trend,
    by_task,
    gap_trend,
    other_language,
    published,
    standard_error,
)

CLAIM = (
    "Accuracy of a probe on the semantic latent minus that on the {second} latent, with 95% intervals. Expected: right "
    "of zero for meaning, left for what a language adds, length, punctuation and gender."
)
PAPER = " Open and grey: the paper's. Compare signs."
NOT_RUN, NO_TASK = "not run", "no such task"
PAPERS = ", paper"  # ends the titles of the paper's columns
TITLES = {"weeks": "Weeks to learn", "syntax": "Syntax", "paper": "The paper's order"}
DISTANCES: dict[str, tuple[Mapping[str, float], str]] = {
    "weeks": (FSI_WEEKS, "Weeks an English speaker needs to learn it (Foreign Service Institute)"),
    "syntax": (URIEL_SYNTAX, "Angular distance of syntactic features (URIEL)"),
    "paper": (PAPER_ORDER, "The paper's order: close, more distant, very distant"),
}
SHARED_FORM = ("length", "punct-num", "punct-first")  # form that translations mostly share
EXPECTED = dict.fromkeys((*SHARED_FORM, "gender"), -1)  # the second latent should lead, as on all that a language adds
MUCH = 10  # times the second latent's information: a semantic latent with more holds the form of a sentence too


def page(loaded: state.Loaded) -> None:
    gaps = with_paper(gather.all_results().gaps)
    if len(loaded.langs) == 1 and loaded.second_latent:
        st.caption(f"This model reads one language, {loaded.languages}; this page compares languages.")
    if loaded.title not in set(gaps["model"]):
        empty(loaded)
    if not gaps.empty:
        shown(gaps, loaded)


def shown(gaps: pd.DataFrame, loaded: state.Loaded) -> None:
    """The results of the chosen models: at first this one, or the one with results in the most languages."""
    counts = gaps.groupby("model")["lang"].nunique()
    widest = max(counts.index, key=lambda model: (counts[model], model == loaded.title))
    usual = loaded.title if loaded.title in counts.index else widest
    with st.container(horizontal=True, vertical_alignment="bottom"):
        gaps = gaps[gaps["model"].isin(controls.chosen_models(gaps, loaded, [usual], "languages_of"))]
    second = chart.second_latents(gaps)
    models = gaps["model"].unique()
    if len(models) > 1:
        numbered = ", ".join(f"{number} is {model}" for number, model in enumerate(models, 1))
        st.caption(verbatim(f"Models: {numbered}."))
    figure = partial(chart.gap_dots, gaps)
    exports.chart(
        "bgt-separation",
        figure,
        f"Semantic minus {second} accuracy in points, with intervals, {gaps['task'].nunique()} tasks; "
        "the table has the same",
    )
    agreement, contrary = verdict(gaps)
    st.markdown(f"**{agreement}**")
    if loaded.title in set(models) and (cause := reason(loaded, contrary)):
        st.caption(cause)
    st.caption(CLAIM.format(second=second) + (PAPER if gaps["paper_gap"].notna().any() else ""))
    cells = [f"{row.points:+z.1f} [{row.ci_low:+z.1f}, {row.ci_high:+z.1f}]" for row in gaps.itertuples()]
    listed = table(gaps.assign(cell=cells), f"Semantic minus {second} in points")
    caption = f"Semantic minus {second} accuracy with 95% intervals; open and grey: the paper's. "
    with st.container(horizontal=True):
        copy_link()
        exports.offer("bgt-separation", gaps, figure, listed, caption=caption + provenance(gaps))
    of_language = gaps[gaps["second"] == LANGUAGE]
    if not of_language.empty:
        with st.expander("Distance to English"):
            trends(of_language)


def empty(loaded: state.Loaded) -> None:
    if not loaded.second_latent:
        st.info(controls.ONE_LATENT, icon=":material/translate:")
        return
    st.info("No results of both latents of this model yet. This page only shows results.", icon=":material/translate:")
    go_to("probes", "Run a small probe", "science")
    with st.expander("Probe from the command line, and start the app with `--results FOLDER`"):
        lines = [gather.COMMAND.format(lang=lang, model="PATH") for lang in loaded.langs]
        st.code("\n".join(lines), language="sh")


def table(cells: pd.DataFrame, what: str) -> pd.DataFrame:
    """A row per task, a column per language, model and run. Cells say if a task was not run, or does not exist in a
    language; the paper's numbers are beside it in grey."""
    several = cells["model"].nunique() > 1
    columns = cells.assign(place=cells["lang"].map(theme.lang_place)).sort_values("place", kind="stable")
    columns["title"] = [
        " · ".join(filter(None, (rows.language_name(row.lang), several and row.model, row.mark)))
        for row in columns.itertuples()
    ]
    columns["published"] = ["" if pd.isna(value) else f"{value:+.1f}" for value in columns["paper_gap"]]
    own, paper = (
        columns.pivot_table(values, "task", "title", aggfunc=" / ".join, sort=False) for values in ("cell", "published")
    )
    lang_of = dict(zip(columns["title"], columns["lang"], strict=True))
    for title, lang in lang_of.items():
        own[title] = [
            cell if isinstance(cell, str) else NOT_RUN if task_names.defined(task, lang) else NO_TASK
            for task, cell in zip(own.index, own[title], strict=True)
        ]
    paper = paper.fillna("").loc[:, lambda table: (table != "").any()].add_suffix(PAPERS)
    shown = own.join(paper)[[name for title in lang_of for name in (title, title + PAPERS) if name in {*own, *paper}]]
    shown = shown.reset_index()
    order = task_names.ordered(shown["task"].unique().tolist())
    shown = shown.sort_values("task", key=lambda tasks: tasks.map(order.index), kind="stable")
    shown["task"] = shown["task"].map(task_names.title)
    shown = shown.rename(columns={"task": "Task"}).rename_axis(columns=None)
    grey = f"color: {theme.SOFT[theme.current()]}"
    styled = shown.style.map(lambda cell: grey if cell in (NOT_RUN, NO_TASK) else "")
    text = st.column_config.TextColumn
    with st.expander("The same as a table"):
        st.dataframe(
            styled.map(lambda _: grey, subset=[*paper]),
            hide_index=True,
            column_config={"Task": text(width=150, pinned=True)}
            | {name: text(width=controls.width(name, 165), alignment="left" if several else "right") for name in own}
            | {name: text(width=controls.width(name), alignment="right") for name in paper},
            alt=f"{what}, with its interval, one row per task",
        )
    return shown


def trends(gaps: pd.DataFrame) -> None:
    """Show the trends of stored results; those run here have too few sentences."""
    gaps = gaps[~gaps["live"].astype(bool)]
    count = gaps["other"].nunique()
    if count < 3:
        st.caption(
            f"A trend needs three languages, and five before it can be distinguished from chance; "
            f"there {'is' if count == 1 else 'are'} {count}."
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        counts = gaps.groupby("task")["other"].nunique()
        tasks = task_names.ordered(counts.index.tolist())
        most = max(tasks, key=counts.__getitem__)
        task = st.selectbox(
            "Task", tasks, tasks.index(most), format_func=task_names.title, key="distance_task", width=230, **BOUND
        )
        by = controls.choice("Distance", list(TITLES), "distance", format_func=TITLES.__getitem__)
    measure, title = DISTANCES[by]
    figure = partial(chart.gap_by_distance, gaps, task, measure, title)
    exports.chart(
        "bgt-distance",
        figure,
        "Separation of each task against the distance of the language to English; the table has the trends",
    )
    table = pd.DataFrame(
        [
            {"Task": task_names.title(name), "Spearman ρ": trend.spearman,
             "95%": f"{trend.spearman_low:z.2f} to {trend.spearman_high:z.2f}", "p (ρ)": p_value(trend.spearman_p),
             "Pearson r": trend.pearson, "p (r)": p_value(trend.pearson_p), "Languages": ", ".join(trend.langs)}
            for name, trend in trends_of(gaps, by).items()
        ]
    )  # fmt: skip
    if table.empty:
        return
    two = st.column_config.NumberColumn(format="%.2f", width=90)
    text = st.column_config.TextColumn(width=110, alignment="right")
    st.dataframe(
        table,
        hide_index=True,
        column_config={"Task": st.column_config.TextColumn(width=160, pinned=True)}
        | dict.fromkeys(("Pearson r", "Spearman ρ"), two)
        | dict.fromkeys(("95%", "p (ρ)", "p (r)"), text),
        alt="Correlation of separation and distance for each task, with p by permutation of the languages",
    )
    st.caption(
        "A point is the mean over the chosen models, and in a bilingual model over both languages. p is by permutation "
        "of the languages: it can't be below 1/60 with five, or 1/360 with six. The interval is of languages "
        "drawn again, and rough for so few. `bgt-probe compare-languages` judges the paper's claims on such results."
    )
    caption = f"Semantic minus language accuracy with 95% intervals. {provenance(gaps[gaps['task'] == task])}"
    exports.offer("bgt-distance", table, figure, table, "Export distance", caption)


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Semantic minus second latent, with `other`, the language of each model besides English, and `paper_gap`, the
    paper's difference in points, NaN if it has none.

    `other` is the probed language; for English it is the other language of a bilingual model. The paper has numbers of
    language latents only.
    """
    own = gaps[(gaps["first"] == SEMANTIC) & gaps["second"].isin((LANGUAGE, SYNTACTIC))]
    others = [other_language(row.lang, row.langs.split()) for row in own.itertuples()]
    cells = [
        published(other, row.task, row.lang) if row.second == LANGUAGE else None
        for other, row in zip(others, own.itertuples(), strict=True)
    ]
    return own.assign(other=others, paper_gap=[float("nan") if cell is None else cell.gap for cell in cells])


def verdict(gaps: pd.DataFrame) -> tuple[str, list[str]]:
    """Count the results that agree with the paper's claim, by intervals; also return the tasks that contradict it."""
    signs = {task_names.MEANING: 1, task_names.ADDED: -1}
    expected = [EXPECTED.get(task, signs.get(task_names.group(task), 0)) for task in gaps["task"]]
    low, high = (gaps[end] * expected for end in ("ci_low", "ci_high"))
    claimed, agree, against = sum(sign != 0 for sign in expected), low.clip(upper=high) > 0, high.clip(lower=low) < 0
    contrary = task_names.ordered(gaps.loc[against, "task"].unique().tolist())
    named = f" ({', '.join(task_names.title(task).lower() for task in contrary)})" if contrary else ""
    unclear = claimed - agree.sum() - against.sum()
    return (
        f"The paper's claim covers {claimed} of these results: {agree.sum()} agree, {against.sum()} contradict "
        f"it{named}, and of {unclear} the interval holds zero."
    ), contrary


def reason(loaded: state.Loaded, contrary: Sequence[str]) -> str:
    """Why this model contradicts the claim in the form that translations share; "" if it doesn't, or if its semantic
    latent holds too little for the reason to be true."""
    own, both = nats(loaded.log, loaded.langs)
    if set(SHARED_FORM).isdisjoint(contrary) or not both > MUCH * own:
        return ""
    return (
        f"Why: the semantic latent of {loaded.title} holds {both - own:,.0f} nats of a sentence, enough to write it "
        "again, so it holds length and marks too, which translations mostly share. An average of token vectors holds "
        "less: from the units of bgt-en-fr that are one, a probe tells the English length in 24 %, guessing in 21 %."
    )


def trends_of(gaps: pd.DataFrame, by: str) -> dict[str, Trend]:
    """Relate the gap of each task to the distance from English, for tasks with three languages or more."""
    distances, _ = DISTANCES[by]
    measured = [
        LanguageGap(row.other, row.task, row.points, standard_error(row.ci_low, row.ci_high))
        for row in gaps.itertuples()
    ]
    of_tasks = {task: gap_trend(by_language, distances) for task, by_language in by_task(measured).items()}
    return {task: trend for task, trend in of_tasks.items() if trend}
