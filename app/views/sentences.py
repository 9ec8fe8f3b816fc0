"""Sentence by sentence: what a latent helps with, and two predictors compared. The end of the page of probes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import streamlit as st
from pyarrow import compute

from app import exports, predictions, rows, task_names
from app.address import BOUND
from app.predictions import Key
from app.probe_tables import p_value
from app.verbatim import verbatim
from bgt_core.errors import BgtError

MAX_LISTED = 200  # sentences shown from either end; the export has them all
TITLES = {"pvi": "Bits", "sentence": "Sentence", "label": "Label", "predicted": "Predicted"}


def title(model: str, lang: str, task: str) -> str:
    """What a result is called, the task first."""
    return f"{task_names.title(task)}, {rows.language_name(lang)}, {model}"


def of(key: Key, table: pa.Table) -> str:
    """What predictions are called, with the number of tested sentences, and whether they were made here."""
    tested = compute.count_distinct(table["item"]).as_py()
    return f"{title(key.model, key.lang, key.task)}, {tested:,} sentences" + (", run here" if key.live else "")


def by_sentence(items: Mapping[Key, pa.Table]) -> None:
    st.subheader("Sentence by sentence")
    if not items:
        st.caption("These results came without predictions; `bgt-probe --predictions FILE.parquet` keeps them.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox("Of", list(items), format_func=lambda key: of(key, items[key]), key="items_of", **BOUND)
        table = items[key]
        names = predictions.predictors(table)
        name = st.selectbox("Latent or baseline", names, key="items_name", width=200, **BOUND)
        others = [other for other in names if other != name]
        other = st.selectbox("Compared with", others, key="items_other", width=200, **BOUND)
    sentences = predictions.by_information(table, name)
    if other:
        compare(key, table, name, other)
    order = st.segmented_control(
        "Sorted by what it knows",
        ["Most first", "Least first"],
        default="Most first",
        required=True,
        key="items_order",
        **BOUND,
    )
    shown = sentences[::-1] if order == "Least first" else sentences
    st.dataframe(
        shown.head(MAX_LISTED)[list(TITLES)].rename(columns=TITLES),
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
        gap = predictions.difference(key, table, name, other)
    except BgtError as error:
        st.caption(verbatim(error))
        return
    interval = f"95%: {gap.ci_low:+.1f} to {gap.ci_high:+.1f}; p {p_value(gap.p)}"
    gap_title = verbatim(f"{name} minus {other}, points")
    st.metric(gap_title, f"{gap.points:+z.1f}", interval, "off", border=True, delta_arrow="off", width="content")
