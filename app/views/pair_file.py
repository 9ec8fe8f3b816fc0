"""A file of sentence pairs, scored and compared with what people said: the second tab of the page of similarity."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, rows, scoring, state, uploading
from app.address import BOUND
from app.charts import scores, theme
from bgt_core.errors import BgtError

MAX_LISTED = 1_000
NAMES = {"left": "Left", "right": "Right", "gold": "Gold", "swer": "Word error rate"}


def languages(loaded: state.Loaded, key: str) -> tuple[str, str]:
    langs = loaded.langs
    left, right = (
        column.segmented_control(
            f"Language of the {side}", langs, default=langs[0], required=True, format_func=rows.language_name,
            key=f"{key}_{side}_lang", **BOUND,
        )
        for column, side in zip(st.columns(2), ("left", "right"), strict=True)
    )  # fmt: skip
    return left, right


def upload(loaded: state.Loaded) -> None:
    st.markdown(
        "Two columns of sentences, in one language or two, and a third of scores that people gave, if there is one."
    )
    texts = {name: text for name, text in uploading.texts_in(loaded.langs).items() if len(text.sides) == 2}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Pairs", list(texts), key="pair_file", width=400) if texts else None
        uploading.button()
    if name is None:
        st.info("Nothing yet: upload a file. STS files with the score first are read as they are.")
        return
    text = texts[name]
    pairs = text.table.rename(columns=dict(zip(text.sides, ("left", "right"), strict=True)))
    try:
        scored = scoring.similarities(loaded, pairs[[*pairs.columns.intersection(NAMES)]], *text.columns)
        if "gold" in scored:
            name = st.segmented_control(
                "Pairs", scoring.SPLITS, default="all", required=True, key="split", **BOUND,
                help="Hard+: alike in meaning with few words in common; Hard-: many words in common, but unlike in "
                "meaning; negation: one of the two is negated. Gold scores are taken as 0 to 5, and word error rates "
                "are ranked within this file.",
            )  # fmt: skip
            scored = scoring.split(scored, name)
        scatter(loaded, scored) if "gold" in scored else listing(loaded, scored)
    except BgtError as error:
        st.error(str(error))


def scatter(loaded: state.Loaded, scored: pd.DataFrame) -> None:
    correlations = scoring.correlations(scored)
    with st.container(horizontal=True):
        for row in correlations.itertuples():
            interval = f"95%: {row.ci_low:.1f} to {row.ci_high:.1f}"
            st.metric(f"{row.system}, Pearson × 100", f"{row.pearson:.1f}", interval, "off", border=True,
                      delta_arrow="off")  # fmt: skip
    figure = partial(scores.gold_scatter, scored, scoring.systems(scored), theme=state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Cosine of each system against the gold score of {len(scored)} pairs; the table below lists them",
        config=theme.tools(f"bgt-similarity-{loaded.short}"),
    )
    listing(loaded, scored, figure, correlations.rename(columns={"system": "System", "pearson": "Pearson x 100"}))


def listing(
    loaded: state.Loaded, scored: pd.DataFrame, figure: partial | None = None, latex: pd.DataFrame | None = None
) -> None:
    names = NAMES | scoring.systems(scored)
    shown = scored.head(MAX_LISTED)[[name for name in names if name in scored]].rename(columns=names)
    two = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        shown, hide_index=True, column_config=dict.fromkeys(shown.columns[2:], two), alt="The pairs with every measure"
    )
    exports.offer(f"bgt-similarity-{loaded.short}", scored, figure, latex)
