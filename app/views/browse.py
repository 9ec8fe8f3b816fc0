"""Results of probes: the second half of the page of probes."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, probe_results, state
from app.address import BOUND
from app.charts import scores, theme
from app.views import sentences

TITLES = {
    "model": "Model",
    "lang": "Language",
    "task": "Task",
    "latent": "Latent or baseline",
    "accuracy": "Accuracy, %",
    "ci_low": "from",
    "ci_high": "to",
    "selectivity": "Selectivity, points",
    "capacity": "Capacity, %",
    "compression": "Compression",
    "information": "Bits per item",
    "run": "Trained + tested on",
    "mark": "Mark",
    "classes": "Classes",
    "note": "Note",
}


def page(results: probe_results.ResultTables, loaded: state.Loaded) -> None:
    st.subheader("Results")
    live = results.scores["live"].astype(bool)
    table = pd.concat([results.scores[live][::-1], results.scores[~live]])  # the last one run comes first
    with st.container(horizontal=True):
        models = chosen_models(table, loaded)
        table = table[table["model"].isin(models)]
        for column, title in (("lang", "Language"), ("task", "Task")):
            values = sorted(table[column].unique())
            wanted = st.multiselect(title, values, key=f"only_{column}", placeholder="All", **BOUND)
            table = table[table[column].isin(wanted)] if wanted else table
    if table.empty:
        st.info("No result matches all filters; remove one.")
        return
    figure = partial(scores.probe_dots, table, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Test accuracy with intervals of {table['latent'].nunique()} latents and baselines; the table has it too",
        config=theme.tools("bgt-probes"),
    )
    st.caption(
        "Bars are 95% intervals over test sentences. A latent knows something only where it beats what never saw the "
        "model: the majority, the length, a bag of words. Selectivity is what is left once the probe's own strength "
        "is subtracted: accuracy minus that on a task of random labels."
    )
    shown = probe_results.percentages(table)
    one_digit = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        shown.rename(columns=TITLES),
        hide_index=True,
        column_config={TITLES[name]: one_digit for name in ("accuracy", "ci_low", "ci_high", "selectivity", "capacity")}
        | {TITLES[name]: st.column_config.NumberColumn(format="%.2f") for name in ("compression", "information")},
        placeholder="",
        alt="Accuracy of every latent and baseline, with its interval",
    )
    gaps(matching(results.gaps, table))
    exports.offer("bgt-probes", table, figure, shown)
    curves(matching(results.curve, table))
    sentences.by_sentence({key: rows for key, rows in results.items.items() if key.task in set(table["task"])})


def chosen_models(table: pd.DataFrame, loaded: state.Loaded) -> list[str]:
    """The models whose results are shown: at first, and whenever another is chosen at the side or has its first result,
    that one. All of them where none is left."""
    models = sorted(table["model"].unique(), key=lambda model: (model != loaded.title, model))
    own = [model for model in models if model == loaded.title]
    changed = st.session_state.get("results_of") not in (None, (loaded.title, own))
    if changed or not {"only_model"} & {*st.session_state, *st.query_params}:
        st.session_state["only_model"] = own
    st.session_state["results_of"] = loaded.title, own
    return st.multiselect("Model", models, key="only_model", placeholder="All", **BOUND) or models


def matching(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models, languages and tasks in `table`."""
    keys = probe_results.CELL
    return rows.merge(table[keys].drop_duplicates(), on=keys)


def gaps(shown: pd.DataFrame) -> None:
    """Differences of two latents on the same sentences."""
    if shown.empty:
        return
    st.markdown("**Difference of the two latents on the same sentences**")
    titles = {"model": "Model", "lang": "Language", "task": "Task", "first": "First", "second": "minus second"}
    titles |= {"points": "Points", "ci_low": "from", "ci_high": "to", "p": "p", "run": "Trained + tested on"}
    titles |= {"adjusted_p": "p, adjusted"} if shown["adjusted_p"].notna().any() else {}
    points, p = (st.column_config.NumberColumn(format=form) for form in ("%+.1f", "%.2g"))
    st.dataframe(
        shown[list(titles)].rename(columns=titles),
        hide_index=True,
        column_config={"Points": points, "from": points, "to": points, "p": p, "p, adjusted": p},
        alt="Accuracy of the first latent minus the second, in points, with its interval and p",
    )


def curves(curve: pd.DataFrame) -> None:
    """What more sentences, and probes of more capacity, would change."""
    if curve.empty:
        return
    st.subheader("Learning curve")
    keys = list(dict.fromkeys(curve[["model", "lang", "task"]].itertuples(index=False, name=None)))
    key = st.selectbox("Of", keys, format_func=lambda key: sentences.title(*key), key="curve_of", **BOUND)
    part = curve.set_index(["model", "lang", "task"]).loc[[key]]
    figure = partial(scores.learning_curves, part, theme=state.theme())
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
    exports.offer("bgt-learning-curve", shown, figure, shown)
