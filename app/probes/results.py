"""The lower part of the page of probes: results, and predictions sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from app.core import controls, exports, rows, state
from app.core.address import BOUND
from app.core.markdown import verbatim
from app.core.results import chart, gather, reading, task_names
from app.core.results.gather import Key
from app.core.results.reading import p_value
from app.probes import compute
from bgt_core.errors import BgtError

TITLES = {
    "task": "Task",
    "points": "Difference",
    "ci_low": "95%: from",
    "ci_high": "95%: to",
    "best": "Baseline, %",
    "which": "Which baseline",
    "shown": "Shown by",
    "lang": "Language",
    "model": "Model",
    "latent": "Latent or baseline",
    "accuracy": "Accuracy, %",
    "selectivity": "Selectivity, points",
    "compression": "Compression",
    "information": "Bits per item",
    "run": "Trained + tested on",
    "data": "Data",
    "classes": "Classes",
    "note": "Note",
    "mark": "Mark",
}
ONE_DIGIT = ("accuracy", "ci_low", "ci_high", "selectivity", "best")
HIGHLIGHT = "background-color: rgba(230, 159, 0, 0.16)"  # for results that were run here, as in the figure
MAX_LISTED = 200  # sentences shown from either end; the export has them all
ITEM_TITLES = {"pvi": "Bits", "sentence": "Sentence", "label": "Label", "predicted": "Predicted"}


def page(results: gather.ResultTables, loaded: state.Loaded) -> None:
    own = loaded.title in set(results.scores["model"])
    st.subheader("Results" if own else "Results of other models")
    live = results.scores["live"].astype(bool)
    table = pd.concat([results.scores[live][::-1], results.scores[~live]])  # the latest run comes first
    usual = loaded.title if own else results.scores["model"].iloc[-1]
    with st.container(horizontal=True):
        table = table[table["model"].isin(controls.chosen_models(table, loaded, [usual]))]
        of_models = table
        table = narrowed(table, "lang", "Language", reading.language_names)
        table = narrowed(table, "task", "Task", task_names.title)
    if table.empty:
        st.info("No result matches all filters; remove one.")
        return
    chosen = table
    if len(table) == len(of_models):
        table = first_language(table, loaded.langs)
    figure = partial(chart.probe_dots, table)
    exports.chart(
        "bgt-probes",
        figure,
        "Test accuracy of each latent with its interval, and of the best baseline; the table has the same",
    )
    st.caption(
        f"Bars are 95% intervals over test sentences. {reading.RULE} The grey tick is the best classifier that never "
        "saw the model: the most frequent answer, the length, a bag of words or of letters."
    )
    st.caption(verbatim(reading.provenance(table)))
    gaps = matching(results.gaps, table)
    wide, long = reading.by_result(table, gaps), reading.percentages(table)
    with st.expander("The same as a table"):
        listed(wide)
        st.markdown("**Every latent and baseline, with its interval**")
        long["task"], long["lang"] = long["task"].map(task_names.title), long["lang"].map(reading.language_names)
        st.dataframe(
            long.rename(columns=TITLES).style.apply(highlighted, axis=1),
            hide_index=True,
            column_config=columns(long),
            placeholder="",
            alt="Accuracy of every latent and baseline, with its interval",
        )
    caption = f"Accuracy of probes with 95% intervals; grey ticks: the best baseline. {reading.provenance(table)}"
    exports.offer("bgt-probes", table, figure, wide, caption=caption)
    curves(matching(results.curve, chosen))
    by_sentence({key: items for key, items in results.items.items() if key.task in set(chosen["task"])})


def first_language(table: pd.DataFrame, langs: Sequence[str]) -> pd.DataFrame:
    """Keep results run here and those of each model's first language, in the order of `langs`; all if the user wants
    them."""
    places = table["lang"].map({lang: place for place, lang in enumerate(langs)}).fillna(len(langs))
    first = table[table["live"].astype(bool) | (places == places.groupby(table["model"]).transform("min"))]
    count = len(table.drop_duplicates([*gather.CELL, "mark"]))
    if len(first) == len(table) or st.toggle(f"Every language: {count} results", key="all_results", **BOUND):
        return table
    return first


def narrowed(table: pd.DataFrame, column: str, title: str, name: Callable[[str], str]) -> pd.DataFrame:
    """Filter the rows."""
    values = sorted(table[column].unique(), key=name)
    wanted = st.multiselect(title, values, format_func=name, key=f"only_{column}", placeholder="All", **BOUND)
    return table[table[column].isin(wanted)] if wanted else table


def listed(wide: pd.DataFrame) -> None:
    """A row per result, its numbers beside the task, which a phone shows too."""
    latents = {name: f"{name.capitalize()}, %" for name in reading.LATENTS if name in wide}
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    heads = (*latents.values(), TITLES["best"])
    percent = {title: number(format="%.1f", width=controls.width(title)) for title in heads}
    signed = number(format="%+.1f", width=controls.width(TITLES["points"]))
    st.dataframe(
        wide.rename(columns=TITLES | latents).style.apply(highlighted, axis=1),
        hide_index=True,
        column_config={
            "Task": text(width=150, pinned=True),
            "Language": text(width=controls.width("Language")),
            "p": text(width=70, alignment="right"),
        }
        | percent
        | dict.fromkeys((TITLES[name] for name in ("points", "ci_low", "ci_high")), signed),
        placeholder="",
        alt="Accuracy of each latent in percent, their difference in points with its interval and p, the best baseline",
    )


def columns(table: pd.DataFrame) -> dict[str, ColumnConfig]:
    one_digit, two_digits = (st.column_config.NumberColumn(format=form) for form in ("%.1f", "%.2f"))
    return {TITLES[name]: one_digit for name in ONE_DIGIT if name in table} | {
        TITLES[name]: two_digits for name in ("compression", "information")
    }


def highlighted(row: pd.Series) -> list[str]:
    """The style of a row."""
    return [HIGHLIGHT if row["Mark"].startswith("run here") else ""] * len(row)


def matching(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models, languages and tasks in `table`."""
    keys = gather.CELL
    return rows.merge(table[keys].drop_duplicates(), on=keys)


def curves(curve: pd.DataFrame) -> None:
    """Learning curves: accuracy over the number of training sentences, and of probes with more capacity."""
    if curve.empty:
        return
    st.subheader("Learning curve")
    names = [*gather.CELL, "mark"]
    keys = list(dict.fromkeys(curve[names].itertuples(index=False, name=None)))
    key = st.selectbox(
        "Of", keys, format_func=lambda key: title(*key[:3]) + (f", {key[3]}" if key[3] else ""), key="curve_of", **BOUND
    )
    part = curve.set_index(names).loc[[key]]
    figure = partial(chart.learning_curves, part)
    exports.chart(
        "bgt-learning-curve",
        figure,
        "Test accuracy over the sentences trained on, one line per latent; the table below has the same",
    )
    st.caption(
        "If a curve still rises, more sentences would help. If a probe with a hidden layer is far above the linear "
        "one, the latent holds the property, but not linearly."
    )
    shown = part[["latent", "family", "n_train", "accuracy", "ci_low", "ci_high"]]
    with st.expander("The same as a table"):
        st.dataframe(shown, hide_index=True, alt="Accuracy for each number of training sentences, with its interval")
    caption = f"{title(*key[:3])}. {reading.provenance(part.reset_index())}"
    exports.offer("bgt-learning-curve", shown, figure, shown, caption=caption)


def title(model: str, lang: str, task: str) -> str:
    """The title of a result, the task first."""
    return f"{task_names.title(task)}, {rows.language_name(lang)}, {model}"


def of(key: Key, table: pa.Table) -> str:
    """Title predictions: the result, the number of tested sentences, and whether they were made here."""
    tested = pc.count_distinct(table["item"]).as_py()
    return f"{title(key.model, key.lang, key.task)}, {tested:,} sentences" + (", run here" if key.live else "")


def by_sentence(items: Mapping[Key, pa.Table]) -> None:
    if not items:
        st.caption("For results sentence by sentence, upload a file of `bgt-probe --out FILE.parquet`.")
        return
    st.subheader("Sentence by sentence")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox("Of", list(items), format_func=lambda key: of(key, items[key]), key="items_of", **BOUND)
        table = items[key]
        names = compute.predictors(table)
        name = st.selectbox("Latent or baseline", names, key="items_name", width=200, **BOUND)
        others = [other for other in names if other != name]
        other = st.selectbox("Compared with", others, key="items_other", width=200, **BOUND)
    sentences = compute.by_information(table, name)
    if other:
        compare(key, table, name, other)
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


def compare(key: Key, table: pa.Table, name: str, other: str) -> None:
    try:
        gap = compute.difference(key, table, name, other)
    except BgtError as error:
        st.caption(verbatim(error))
        return
    interval = f"95%: {gap.ci_low:+.1f} to {gap.ci_high:+.1f}; p {p_value(gap.p)}"
    gap_title = verbatim(f"{name} minus {other}, points")
    st.metric(gap_title, f"{gap.points:+z.1f}", interval, "off", border=True, delta_arrow="off", width="content")
