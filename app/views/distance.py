"""Does the separation change with distance to English? The end of the page that compares languages."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, languages, state, task_names
from app.address import BOUND
from app.charts import gaps as charts
from app.charts import theme
from app.probe_tables import p_value, provenance

TITLES = {"weeks": "Weeks to learn", "syntax": "Syntax", "paper": "The paper's order"}


def trends(gaps: pd.DataFrame) -> None:
    """Of stored results; those run here are of too few sentences."""
    st.subheader("Distance to English")
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
        by = st.segmented_control(
            "Distance", list(languages.DISTANCES), default="weeks", required=True, key="distance", **BOUND,
            format_func=TITLES.__getitem__,
        ) or "weeks"  # fmt: skip
    measure, title = languages.DISTANCES[by]
    figure = partial(charts.gap_by_distance, gaps, task, measure, title, theme=state.theme())
    st.plotly_chart(
        figure(),
        alt="Separation of each task against the distance of the language to English; the table has the trends",
        config=theme.tools("bgt-distance"),
    )
    table = pd.DataFrame(
        [
            {"Task": task_names.title(name), "Spearman ρ": trend.spearman,
             "95%": f"{trend.spearman_low:z.2f} to {trend.spearman_high:z.2f}", "p (ρ)": p_value(trend.spearman_p),
             "Pearson r": trend.pearson, "p (r)": p_value(trend.pearson_p), "Languages": ", ".join(trend.langs)}
            for name, trend in languages.trends(gaps, by).items()
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
        "p by permutation of the languages: with five of them none can be below 1/60. The interval is of languages "
        "drawn again, and rough for so few. `bgt-probe compare-languages` judges the paper's claims on such results."
    )
    caption = f"Semantic minus language accuracy with 95% intervals. {provenance(gaps[gaps['task'] == task])}"
    exports.offer("bgt-distance", table, figure, table, "Export distance", caption)
