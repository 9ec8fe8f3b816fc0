"""What was measured: the second half of the page of probes."""

from __future__ import annotations

from functools import partial

import pandas as pd
import pyarrow as pa
import streamlit as st

from app import exports, items, results, rows, state
from app.charts import scores, theme
from bgt_core.errors import BgtError

LISTED = 200  # sentences shown from either end; the export has them all
NAMES = {
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
    "information": "Bits an item",
    "n_test": "Tested on",
    "classes": "Classes",
    "note": "Note",
}


def page(found: results.Results) -> None:
    st.subheader("Results")
    table = found.scores
    with st.container(horizontal=True):
        for column, title in (("model", "Model"), ("lang", "Language"), ("task", "Task")):
            values = sorted(table[column].unique())
            kept = st.multiselect(title, values, key=f"only_{column}", placeholder="All", bind="query-params")
            table = table[table[column].isin(kept)] if kept else table
    if table.empty:
        st.info("No result is all of that; take a filter away.")
        return
    figure = partial(scores.probe_dots, table, state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Test accuracy with intervals of {table['latent'].nunique()} latents and baselines; the table has it too",
        config=theme.tools("bgt-probes"),
    )
    st.caption(
        "Bars are 95% intervals over test sentences. A latent knows something only where it beats what never saw the "
        "model: the majority, the length, a bag of words. Selectivity is what is left once the probe's own strength "
        "is taken off: accuracy minus that on a task of random labels."
    )
    shown = results.percentages(table)
    one = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        shown.rename(columns=NAMES),
        hide_index=True,
        column_config={NAMES[name]: one for name in ("accuracy", "ci_low", "ci_high", "selectivity", "capacity")}
        | {NAMES[name]: st.column_config.NumberColumn(format="%.2f") for name in ("compression", "information")},
        placeholder="",
        alt="Accuracy of every latent and baseline, with its interval",
    )
    gaps(found.gaps, table)
    exports.offer("bgt-probes", table, figure, shown)
    curves(inside(found.curve, table))
    predicted({place: kept for place, kept in found.items.items() if place[1] in set(table["task"])})


def inside(those: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models, languages and tasks in `table`."""
    keys = ["model", "lang", "task"]
    return those.merge(table[keys].drop_duplicates(), on=keys)


def gaps(all_gaps: pd.DataFrame, table: pd.DataFrame) -> None:
    """Differences of two latents on the same sentences."""
    shown = inside(all_gaps, table)
    if shown.empty:
        return
    st.markdown("**Difference of the two latents on the same sentences**")
    named = {"model": "Model", "lang": "Language", "task": "Task", "first": "First", "second": "minus second"}
    named |= {"points": "Points", "ci_low": "from", "ci_high": "to", "p": "p"}
    named |= {"adjusted_p": "p, adjusted"} if shown["adjusted_p"].notna().any() else {}
    one, p = (st.column_config.NumberColumn(format=form) for form in ("%+.1f", "%.2g"))
    st.dataframe(
        shown[list(named)].rename(columns=named),
        hide_index=True,
        column_config={"Points": one, "from": one, "to": one, "p": p, "p, adjusted": p},
        alt="Accuracy of the first latent minus the second, in points, with its interval and p",
    )


def curves(curve: pd.DataFrame) -> None:
    """What more sentences, and probes of more capacity, would change."""
    if curve.empty:
        return
    st.subheader("Learning curve")
    places = list(dict.fromkeys(curve[["model", "lang", "task"]].itertuples(index=False, name=None)))
    place = st.selectbox("Of", places, format_func=said, key="curve_of", bind="query-params")
    part = curve.set_index(["model", "lang", "task"]).loc[[place]]
    figure = partial(scores.learning_curves, part, state.theme())
    st.plotly_chart(
        figure(),
        alt="Test accuracy over the sentences trained on, a line a latent; the table below has the same",
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


def said(place: tuple[str, ...]) -> str:
    """A model, a language and a task, the task first."""
    model, lang, task = place
    return f"{task}, {rows.name(lang)}, {model}"


def predicted(kept: dict[tuple[str, ...], pa.Table]) -> None:
    """Sentence by sentence: what a latent helps with, and two predictors held against each other."""
    st.subheader("Sentence by sentence")
    if not kept:
        st.caption("These results came without predictions; `bgt-probe --predictions FILE.parquet` keeps them.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        bound = {"bind": "query-params"}
        place = st.selectbox(
            "Of", list(kept), format_func=lambda at: said((at[0], at[2], at[1])), key="items_of", **bound
        )
        table = kept[place]
        names = items.predictors(table)
        name = st.selectbox("Latent or baseline", names, key="items_name", width=200, **bound)
        others = [one for one in names if one != name]
        other = st.selectbox("Held against", others, key="items_other", width=200, **bound)
    sentences = items.by_information(table, name)
    if other:
        against(place, table, name, other)
    first = st.segmented_control(
        "Sorted by what it knows",
        ["Most first", "Least first"],
        default="Most first",
        required=True,
        key="items_order",
        **bound,
    )
    shown = sentences if first == "Most first" else sentences[::-1]
    st.dataframe(
        shown.head(LISTED).rename(
            columns={"sentence": "Sentence", "label": "Label", "predicted": "Predicted", "pvi": "Bits"}
        ),
        hide_index=True,
        column_config={"Bits": st.column_config.NumberColumn(format="%+.2f", width="small")},
        alt="Tested sentences with their label, what was predicted, and the pointwise V-information in bits",
    )
    st.caption(
        f"{len(sentences):,} tested sentences. Bits are pointwise V-information: how much more probable the true label "
        "became once the latent was read; below zero it misled."
    )
    exports.offer(f"bgt-items-{place[1]}-{place[2]}-{name}", sentences)


def against(place: tuple[str, ...], table: pa.Table, name: str, other: str) -> None:
    try:
        found = items.difference(place, table, name, other)
    except BgtError as error:
        st.caption(str(error))
        return
    between = f"95%: {found.ci_low:+.1f} to {found.ci_high:+.1f}; p {found.p:.2g}"
    st.metric(f"{name} minus {other}, points", f"{found.points:+z.1f}", between, "off", border=True, delta_arrow="off",
              width="content")  # fmt: skip
