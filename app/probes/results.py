"""The lower part of the page: results as accuracies or differences, and predictions for each sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import pyarrow.compute as pc
import streamlit as st

from app.core import controls, exports, rows, state
from app.core.address import BOUND
from app.core.markdown import verbatim
from app.core.results import gather, reading, task_names
from app.core.results.gather import Key
from app.probes import chart, compute
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.errors import BgtError
from probes.results import tables
from probes.results.languages import PUBLISHED, other_language
from probes.results.store import Cell

TITLES = {
    "task": "Task",
    "points": "Difference",
    "ci_low": "95%: from",
    "ci_high": "95%: to",
    "paper_gap": "The paper's",
    "best": "Baseline, %",
    "which": "Which baseline",
    "shown": "Shown by",
    "lang": "Language",
    "model": "Model",
    "latent": "Latent or baseline",
    "accuracy": "Accuracy, %",
    "selectivity": "Selectivity, points",
    "information": "Bits per item",
    "run": "Trained + tested on",
    "data": "Data",
    "classes": "Classes",
    "note": "Note",
    "mark": "Mark",
}
HIGHLIGHT = "background-color: rgba(230, 159, 0, 0.16)"  # for results that were run here, as in the figure
MAX_LISTED = 200  # sentences shown from either end; the export has all
ITEM_TITLES = {"pvi": "Bits", "sentence": "Sentence", "label": "Label", "predicted": "Predicted"}
ACCURACY, DIFFERENCE = "Accuracy", "Difference"  # two views of the same results
SHARED_FORM = ("length", "punct-num", "punct-first")  # properties of form that translations mostly share
EXPECTED = dict.fromkeys((*SHARED_FORM, "gender"), -1)  # the second latent should lead, as on all style
MUCH = 10  # a semantic latent with this many times the second latent's information also holds the form


def page(results: gather.ResultTables, loaded: state.Loaded) -> None:
    own = loaded.title in set(results.scores["model"])
    st.subheader("Results" if own else "Results of other models")
    live = results.scores["live"].astype(bool)
    table = pd.concat([results.scores[live][::-1], results.scores[~live]])  # the latest run comes first
    usual = loaded.title if own else results.scores["model"].iloc[-1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = controls.choice("Show", [ACCURACY, DIFFERENCE], "show")
        table = table[table["model"].isin(controls.chosen_models(table, loaded, [usual]))]
        table = narrowed(table, "lang", "Language", reading.language_names)
        table = narrowed(table, "task", "Task", task_names.title)
    gaps = with_paper(matching(results.gaps, table))
    if table.empty:
        st.info("No result matches all filters; remove one.")
        return
    if view == DIFFERENCE and gaps.empty:
        st.info("None of these results compares two latents.")
        return
    if view == ACCURACY:
        figure = partial(chart.probe_dots, table)
        alt = "Test accuracy of each latent with its interval, and of the best baseline; the table has the same"
        about = (
            f"Bars are 95% intervals over test sentences. {reading.RULE} The grey tick is the best classifier that "
            "never saw the model: the most frequent answer, the length, a bag of words or of letters."
        )
    else:
        figure = partial(chart.gap_dots, gaps)
        alt = "Semantic minus second latent's accuracy in points, with intervals; the table has the same"
        agreement, contrary = verdict(gaps)
        st.markdown(f"**{agreement}**")
        if loaded.title in set(gaps["model"]) and (cause := reason(loaded, contrary)):
            st.caption(cause)
        about = (
            "Accuracy of a probe on the semantic latent minus that on the second latent, with 95% intervals. Expected: "
            "right of zero for meaning, left for what a language adds, length, punctuation and gender."
            + (" Open and grey: the paper. Compare signs." if gaps["paper_gap"].notna().any() else "")
        )
    exports.chart(f"bgt-probes-{view.lower()}", figure, alt)
    st.caption(about)
    st.caption(verbatim(reading.provenance(table)))
    wide, long = reading.by_result(table, gaps), reading.percentages(table)
    with st.expander("The same as a table"):
        listed(wide)
        st.markdown("**Every latent and baseline, with its interval**")
        long["task"], long["lang"] = long["task"].map(task_names.title), long["lang"].map(reading.language_names)
        one_digit, two_digits = (st.column_config.NumberColumn(format=form) for form in ("%.1f", "%.2f"))
        st.dataframe(
            long.rename(columns=TITLES).style.apply(highlighted, axis=1),
            hide_index=True,
            column_config=dict.fromkeys(
                (TITLES[name] for name in ("accuracy", "ci_low", "ci_high", "selectivity") if name in long), one_digit
            )
            | {TITLES["information"]: two_digits},
            placeholder="",
            alt="Accuracy of every latent and baseline, with its interval",
        )
    caption = f"{about.partition('. ')[0]}. {reading.provenance(table)}"
    exports.offer("bgt-probes", table if view == ACCURACY else gaps, figure, wide, caption=caption)
    items = {key: items for key, items in results.items.items() if key.task in set(table["task"])}
    if not items:
        st.caption("For results sentence by sentence, upload a file of `bgt-probe --out FILE.parquet`.")
        return
    with st.expander("Sentence by sentence"):
        by_sentence(items)


def narrowed(table: pd.DataFrame, column: str, title: str, name: Callable[[str], str]) -> pd.DataFrame:
    """Show a filter of a column, and return the rows that pass."""
    values = sorted(table[column].unique(), key=name)
    wanted = st.multiselect(title, values, format_func=name, key=f"only_{column}", placeholder="All", **BOUND)
    return table[table[column].isin(wanted)] if wanted else table


def matching(gaps: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of the models, languages and tasks in `table`, in its order."""
    return table[gather.CELL].drop_duplicates().merge(gaps, on=gather.CELL)


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Select the differences of semantic and second latent, and add `paper_gap`, the paper's in points, or NaN.

    The paper only has numbers for language latents, of models of English and one other language.
    """
    own = gaps[(gaps["first"] == SEMANTIC) & gaps["second"].isin((LANGUAGE, SYNTACTIC))]
    cells = [
        PUBLISHED.get((other_language(row.lang, row.langs.split()), row.task, row.lang))
        if row.second == LANGUAGE else None
        for row in own.itertuples()
    ]  # fmt: skip
    return own.assign(paper_gap=[float("nan") if cell is None else cell[0] - cell[1] for cell in cells])


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
    """Explain why this model contradicts the claim for the form that translations share; "" if it does not contradict
    it, or if its semantic latent holds too little for the explanation."""
    own, both = reading.nats(loaded.log, loaded.langs)
    if set(SHARED_FORM).isdisjoint(contrary) or not both > MUCH * own:
        return ""
    return (
        f"Why: the semantic latent of {loaded.title} holds {both - own:,.0f} nats of a sentence, enough to write it "
        "again, so it holds length and marks too, which translations mostly share. An average of token vectors holds "
        "less: from the units of bgt-en-fr that are one, a probe tells the English length in 24 %, guessing in 21 %."
    )


def listed(wide: pd.DataFrame) -> None:
    """Show a row per result, with its numbers beside the task, so that a phone shows both."""
    latents = {name: f"{name.capitalize()}, %" for name in reading.LATENTS if name in wide}
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    heads = (*latents.values(), TITLES["best"])
    signed = ("points", "ci_low", "ci_high", "paper_gap")
    st.dataframe(
        wide.rename(columns=TITLES | latents).style.apply(highlighted, axis=1),
        hide_index=True,
        column_config={
            "Task": text(width=150, pinned=True),
            "Language": text(width=controls.width("Language")),
            "p": text(width=70, alignment="right"),
        }
        | {title: number(format="%.1f", width=controls.width(title)) for title in heads}
        | {TITLES[name]: number(format="%+.1f", width=controls.width(TITLES[name])) for name in signed},
        placeholder="",
        alt="Accuracy of each latent in percent, their difference in points with its interval and p, the best baseline",
    )


def highlighted(row: pd.Series) -> list[str]:
    """Return the style of a row."""
    return [HIGHLIGHT if row["Mark"].startswith("run here") else ""] * len(row)


def by_sentence(items: Mapping[Key, Cell]) -> None:
    def of(key: Key) -> str:
        tested = pc.count_distinct(items[key].predictions["item"]).as_py()
        title = f"{task_names.title(key.task)}, {rows.language_name(key.lang)}, {key.model}"
        return f"{title}, {tested:,} sentences" + (", run here" if key.live else "")

    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox("Of", list(items), format_func=of, key="items_of", **BOUND)
        cell = items[key]
        names = cell.predictions["predictor"].unique().to_pylist()
        name = st.selectbox("Latent or baseline", names, key="items_name", width=200, **BOUND)
        others = [other for other in names if other != name]
        other = st.selectbox("Compared with", others, key="items_other", width=200, **BOUND)
    sentences = compute.by_information(cell.predictions, name)
    if other:
        try:
            gap = tables.gap(cell, name, cell, other)
        except BgtError as error:
            st.caption(verbatim(error))
        else:
            interval = f"95%: {gap.ci_low:+.1f} to {gap.ci_high:+.1f}; p {reading.p_value(gap.p)}"
            head, points = verbatim(f"{name} minus {other}, points"), f"{gap.points:+z.1f}"
            st.metric(head, points, interval, "off", border=True, delta_arrow="off", width="content")
    order = controls.choice("Sort by information", ["Most first", "Least first"], "items_order")
    shown = sentences[::-1] if order == "Least first" else sentences
    st.dataframe(
        shown.head(MAX_LISTED)[list(ITEM_TITLES)].rename(columns=ITEM_TITLES),
        hide_index=True,
        column_config={
            "Bits": st.column_config.NumberColumn(format="%+.2f", width=75),
            "Sentence": st.column_config.TextColumn(width=500),
        },
        alt="Tested sentences with their label, what was predicted, and the pointwise V-information in bits",
    )
    st.caption(
        f"{len(sentences):,} tested sentences, {min(MAX_LISTED, len(sentences)):,} listed. "
        "Bits are pointwise V-information: how much more probable the true label "
        "became once the latent was read; below zero it misled."
    )
    exports.offer(f"bgt-items-{key.task}-{key.lang}-{name}", sentences)
