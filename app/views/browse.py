"""Results of probes: the second half of the page of probes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from app import exports, probe_results, probe_tables, rows, state, task_names
from app.address import BOUND
from app.charts import probes, theme
from app.views import sentences

TITLES = {
    "task": "Task",
    "points": "Difference",
    "ci_low": "from",
    "ci_high": "to",
    "best": "Best baseline, %",
    "which": "It is",
    "lang": "Language",
    "model": "Model",
    "latent": "Latent or baseline",
    "accuracy": "Accuracy, %",
    "selectivity": "Selectivity, points",
    "capacity": "Capacity, %",
    "compression": "Compression",
    "information": "Bits per item",
    "run": "Trained + tested on",
    "data": "Data",
    "classes": "Classes",
    "note": "Note",
    "mark": "Mark",
}
ONE_DIGIT = ("accuracy", "ci_low", "ci_high", "selectivity", "capacity", "best")
HIGHLIGHT = "background-color: rgba(230, 159, 0, 0.16)"  # of what was run here, as in the figure


def page(results: probe_results.ResultTables, loaded: state.Loaded) -> None:
    st.subheader("Results")
    live = results.scores["live"].astype(bool)
    table = pd.concat([results.scores[live][::-1], results.scores[~live]])  # the last one run comes first
    with st.container(horizontal=True):
        table = table[table["model"].isin(chosen_models(table, loaded, [loaded.title]))]
        table = narrowed(table, "lang", "Language", rows.language_name)
        table = narrowed(table, "task", "Task", task_names.title)
    if table.empty:
        st.info("No result matches all filters; remove one.")
        return
    figure = partial(probes.probe_dots, table, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt="Test accuracy of each latent with its interval, and of the best baseline; the table has the same",
        config=theme.tools("bgt-probes"),
    )
    st.caption(
        "Bars are 95% intervals over test sentences. A latent knows something only where it beats the grey tick, the "
        "best of what never saw the model: the commonest label, the length, a bag of words or of letters."
    )
    gaps = matching(results.gaps, table)
    wide, long = probe_tables.by_result(table, gaps), probe_tables.percentages(table)
    listed(wide)
    with st.expander("Every latent and baseline, with its interval"):
        st.dataframe(
            long.rename(columns=TITLES).style.apply(highlighted, axis=1),
            hide_index=True,
            column_config=columns(long),
            placeholder="",
            alt="Accuracy of every latent and baseline, with its interval",
        )
    caption = f"Accuracy of probes with 95% intervals; grey ticks: the best baseline. {probe_tables.provenance(table)}"
    exports.offer("bgt-probes", table, figure, wide, caption=caption)
    curves(matching(results.curve, table))
    sentences.by_sentence({key: items for key, items in results.items.items() if key.task in set(table["task"])})


def chosen_models(table: pd.DataFrame, loaded: state.Loaded, usual: list[str], key: str = "only_model") -> list[str]:
    """The models whose results are shown: at first, and whenever another is chosen at the side or has its first result,
    those of `usual` that have any. All of them where none is left."""
    models = sorted(table["model"].unique(), key=lambda model: (model != loaded.title, model))
    usual = [model for model in models if model in usual]
    changed = st.session_state.get(f"{key}_of") not in (None, (loaded.title, usual))
    if changed or not {key} & {*st.session_state, *st.query_params}:
        st.session_state[key] = usual
    st.session_state[f"{key}_of"] = loaded.title, usual
    return st.multiselect("Model", models, key=key, placeholder="All", **BOUND) or models


def narrowed(table: pd.DataFrame, column: str, title: str, name: Callable[[str], str]) -> pd.DataFrame:
    """The rows that a filter leaves."""
    values = sorted(table[column].unique())
    wanted = st.multiselect(title, values, format_func=name, key=f"only_{column}", placeholder="All", **BOUND)
    return table[table[column].isin(wanted)] if wanted else table


def listed(wide: pd.DataFrame) -> None:
    """A row per result, its numbers beside the task, where a phone shows them too."""
    latents = {name: f"{name.capitalize()}, %" for name in probe_tables.LATENTS if name in wide}
    number = st.column_config.NumberColumn(format="%.1f", width=74)
    signed = st.column_config.NumberColumn(format="%+.1f", width=85)
    st.dataframe(
        wide.rename(columns=TITLES | latents).style.apply(highlighted, axis=1),
        hide_index=True,
        column_config={
            "Task": st.column_config.TextColumn(width=150, pinned=True),
            "Language": st.column_config.TextColumn(width=66),
        }
        | dict.fromkeys(latents.values(), number)
        | {TITLES["best"]: number, "p": st.column_config.TextColumn(width=70, alignment="right")}
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
    keys = probe_results.CELL
    return rows.merge(table[keys].drop_duplicates(), on=keys)


def curves(curve: pd.DataFrame) -> None:
    """What more sentences, and probes of more capacity, would change."""
    if curve.empty:
        return
    st.subheader("Learning curve")
    names = [*probe_results.CELL, "mark"]
    keys = list(dict.fromkeys(curve[names].itertuples(index=False, name=None)))
    key = st.selectbox(
        "Of",
        keys,
        format_func=lambda key: sentences.title(*key[:3]) + (f", {key[3]}" if key[3] else ""),
        key="curve_of",
        **BOUND,
    )
    part = curve.set_index(names).loc[[key]]
    figure = partial(probes.learning_curves, part, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt="Test accuracy over the sentences trained on, one line per latent; the table below has the same",
        config=theme.tools("bgt-learning-curve"),
    )
    st.caption(
        "Still rising at the end: more sentences would help. A probe with a hidden layer far above the linear one: the "
        "latent has it, but not along a line."
    )
    shown = part[["latent", "family", "n_train", "accuracy", "ci_low", "ci_high"]]
    with st.expander("The same as a table"):
        st.dataframe(shown, hide_index=True, alt="Accuracy for each number of training sentences, with its interval")
    caption = f"{sentences.title(*key[:3])}. {probe_tables.provenance(part.reset_index())}"
    exports.offer("bgt-learning-curve", shown, figure, shown, caption=caption)
