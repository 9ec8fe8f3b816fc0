"""Does the separation hold in every language?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.navigation.page import Page

from app import exports, results, rows, state
from app.charts import look, scores
from app.views.probing import everything

SHOWN = {"task": "Task", "lang": "Language", "model": "Model", "points": "Points", "ci_low": "from", "ci_high": "to"}


def page(probes: Page) -> None:
    loaded = state.model()
    st.title("Compare languages")
    st.markdown("Does the semantic latent keep meaning, and the language latent manner, in every language and model?")
    gaps = results.placed(everything().gaps)
    if gaps.empty:
        empty(loaded, probes)
        return
    langs = list(dict.fromkeys(gaps["other"]))
    figure = partial(scores.gap_dots, gaps, langs, state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Semantic minus language accuracy in points, with intervals, {gaps['task'].nunique()} tasks; "
        "the table has the same",
        config=look.tools("bgt-separation"),
    )
    st.caption(
        "Accuracy of a probe on the semantic latent minus that on the language latent, with 95% intervals. "
        "The claim to test is a pattern of signs: right of zero where a task is about meaning, left of it where it is "
        "about length, punctuation or grammatical gender. An interval that holds zero says nothing either way."
    )
    table(gaps)
    distance(gaps)
    exports.offer("bgt-separation", gaps, figure)


def empty(loaded: state.Loaded, probes: Page) -> None:
    st.info("No results of both latents yet: nothing is computed on this page.", icon=":material/translate:")
    st.page_link(probes, label="Run a small probe", icon=":material/science:")
    st.markdown("Or probe each model from the command line, and start the app with `--results FOLDER`:")
    lines = [results.COMMAND.format(lang=lang, model="PATH") for lang in loaded.bgt.langs]
    st.code("\n".join(lines), language="sh")


def table(gaps: pd.DataFrame) -> None:
    """A row a task, a column a language and model; what was not run says so."""
    shown = gaps.assign(
        column=[f"{rows.name(row.lang)} · {row.model}" for row in gaps.itertuples()],
        cell=[f"{row.points:+.1f} [{row.ci_low:+.1f}, {row.ci_high:+.1f}]" for row in gaps.itertuples()],
    )
    wide = shown.pivot_table("cell", "task", "column", aggfunc="last", sort=False).fillna("not run")
    st.table(wide, border="horizontal", alt="Semantic minus language in points, with its interval, a row a task")


def distance(gaps: pd.DataFrame) -> None:
    st.subheader("Distance to English")
    if gaps["other"].nunique() < 3:
        st.caption(
            f"A trend needs three languages, and five before it can be told from chance; "
            f"there {'is' if gaps['other'].nunique() == 1 else 'are'} {gaps['other'].nunique()}."
        )
        return
    by = st.segmented_control(
        "Distance", list(results.DISTANCES), default="weeks", required=True, key="distance", bind="query-params",
        format_func={"weeks": "Weeks to learn", "paper": "The paper's order"}.get,
    )  # fmt: skip
    measure, title = results.DISTANCES[by]
    figure = partial(scores.gap_by_distance, gaps, measure, title, state.theme())
    st.plotly_chart(
        figure(),
        alt="Separation of each task against the distance of the language to English; the table has the trends",
        config=look.tools("bgt-distance"),
    )
    found = [
        {"Task": task, "Languages": ", ".join(trend.langs), "Pearson r": trend.pearson, "p": trend.pearson_p,
         "Spearman ρ": trend.spearman, "p (ρ)": trend.spearman_p}
        for task, trend in results.trends(gaps, by).items()
    ]  # fmt: skip
    if found:
        two = st.column_config.NumberColumn(format="%.2f")
        st.dataframe(
            pd.DataFrame(found),
            hide_index=True,
            column_config=dict.fromkeys(("Pearson r", "p", "Spearman ρ", "p (ρ)"), two),
            alt="Correlation of separation and distance for each task, with p by permutation of the languages",
        )
        st.caption("p by permutation of the languages: with five of them none can be below 1/120.")
