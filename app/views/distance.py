"""Does the separation change with distance to English? The end of the page that compares languages."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, languages, state
from app.address import BOUND
from app.charts import scores, theme

TITLES = {"weeks": "Weeks to learn", "syntax": "Syntax", "paper": "The paper's order"}


def trends(gaps: pd.DataFrame) -> None:
    st.subheader("Distance to English")
    count = gaps["other"].nunique()
    if count < 3:
        st.caption(
            f"A trend needs three languages, and five before it can be distinguished from chance; "
            f"there {'is' if count == 1 else 'are'} {count}."
        )
        return
    by = st.segmented_control(
        "Distance", list(languages.DISTANCES), default="weeks", required=True, key="distance", **BOUND,
        format_func=TITLES.__getitem__,
    )  # fmt: skip
    measure, title = languages.DISTANCES[by]
    figure = partial(scores.gap_by_distance, gaps, measure, title, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt="Separation of each task against the distance of the language to English; the table has the trends",
        config=theme.tools("bgt-distance"),
    )
    table = pd.DataFrame(
        [
            {"Task": task, "Languages": ", ".join(trend.langs), "Pearson r": trend.pearson, "p": trend.pearson_p,
             "Spearman ρ": trend.spearman, "95%": f"{trend.spearman_low:.2f} to {trend.spearman_high:.2f}",
             "p (ρ)": trend.spearman_p}
            for task, trend in languages.trends(gaps, by).items()
        ]
    )  # fmt: skip
    if table.empty:
        return
    two = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        table,
        hide_index=True,
        column_config=dict.fromkeys(("Pearson r", "p", "Spearman ρ", "p (ρ)"), two),
        alt="Correlation of separation and distance for each task, with p by permutation of the languages",
    )
    st.caption(
        "p by permutation of the languages: with five of them none can be below 1/60. The interval is of languages "
        "drawn again, and rough for so few. `bgt-probe compare-languages` judges the paper's claims on such results."
    )
    exports.offer("bgt-distance", table, figure, table, "Export distance")
