"""A file of sentence pairs, scored and compared with what people said: the second tab of the page of similarity."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import exports, rows, scoring, state, uploading
from app.address import BOUND
from app.charts import scores, theme
from app.verbatim import problem
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

NAMES = {  # of the columns, numbers first
    "gold": "Gold",
    "misjudged": "Misjudged",
    "left": "Left",
    "right": "Right",
    "overlap": "Words in common",
    "swer": "Word error rate",
}
WORST = 10
SPLIT_HELP = (
    "Hard+: alike in meaning with few words in common; Hard-: many words in common, but unlike in meaning; negation: "
    "one of the two is negated. Gold scores are taken as 0 to 5, and word error rates are ranked within this file."
)


def languages(loaded: state.Loaded, key: str) -> tuple[str, str]:
    langs = loaded.langs
    left, right = (
        column.segmented_control(
            f"Language of the {side}", langs, default=langs[0], required=True, format_func=rows.language_name,
            key=f"{key}_{side}_lang", **BOUND,
        ) or langs[0]
        for column, side in zip(st.columns(2), ("left", "right"), strict=True)
    )  # fmt: skip
    return left, right


def upload(loaded: state.Loaded) -> None:
    st.markdown(
        "Two columns of sentences, in one language or two, and a third of scores that people gave, if there is one."
    )
    chosen = uploading.choose_pairs(loaded.langs, "pair_file")
    if chosen is None:
        st.info("Nothing yet: upload a file. STS files with the score first are read as they are.")
        return
    name, pairs, langs = chosen
    try:
        scored = scoring.similarities(loaded, pairs, *langs)
        judged(loaded, scored, name) if "gold" in scored else unjudged(loaded, scored, name)
    except BgtError as error:
        problem(error)


def judged(loaded: state.Loaded, scored: pd.DataFrame, file: str) -> None:
    """Pairs with people's scores: correlations, their differences, and where the model is farthest from people."""
    parts = {name: scoring.split(scored, name) for name in scoring.SPLITS}
    name = (
        st.segmented_control(
            "Which of them", scoring.SPLITS, default="all", required=True, key="split", help=SPLIT_HELP, **BOUND
        )
        or "all"
    )
    st.caption(f"Pairs in each: {', '.join(f'{split} {len(part):,}' for split, part in parts.items())}.")
    scored = parts[name].reset_index(drop=True)
    correlations, differences = scoring.correlations(scored), scoring.differences(scored)
    with st.container(horizontal=True):
        for row in correlations.itertuples():
            metric(f"{row.system}, Pearson × 100", f"{row.pearson:z.1f}", row)
        for row in differences.itertuples():
            metric(row.difference, f"{row.pearson:+z.1f}", row)
    st.caption(
        "A difference is that of the two correlations on the same resamples of the pairs, so it is surer than the two "
        "intervals suggest. An interval that holds 0 decides nothing."
    )
    scored = scored.assign(misjudged=scoring.misjudged(scored))
    chosen = charts(loaded, scored, "gold", "gold score, spread a little", scoring.systems(scored))
    if not len(chosen):
        st.markdown("**The worst misjudged**: where the semantic latent is farthest from people")
        listing(scored.loc[scored["misjudged"].abs().sort_values(ascending=False).index[:WORST]], whole=True)
        st.caption("Misjudged: its standard score less people's; above 0, the model finds the pair too much alike.")
    table = pd.concat([correlations, differences.rename(columns={"difference": "system"})], ignore_index=True)
    pearson = ", ".join(
        f"{row.system} {row.pearson:z.1f} [{row.ci_low:z.1f}, {row.ci_high:z.1f}]" for row in correlations.itertuples()
    )
    caption = f"Pairs of {file} ({name}); gold scores spread a little. Pearson x 100 and its 95% interval: {pearson}."
    latex = table.rename(columns={"system": "System", "pearson": "Pearson x 100"})
    everything(loaded, scored, "gold", caption, latex)


def metric(label: str, value: str, row: object) -> None:
    interval = f"95%: {row.ci_low:z.1f} to {row.ci_high:z.1f}, n {row.n:,}"  # type: ignore[attr-defined]
    st.metric(label, value, interval, "off", border=True, delta_arrow="off")


def unjudged(loaded: state.Loaded, scored: pd.DataFrame, file: str) -> None:
    """Pairs without scores: each other system against the semantic latent, the second latent's plane among them."""
    names = scoring.systems(scored)
    others = {system: title for system, title in names.items() if system != SEMANTIC}
    charts(loaded, scored, SEMANTIC, "semantic cosine", others)
    if loaded.second_latent:
        st.caption("*Where they disagree* shows the same pairs with quadrants and the most extreme of them.")
    everything(loaded, scored, SEMANTIC, f"Pairs of {file}.")


def charts(loaded: state.Loaded, scored: pd.DataFrame, x: str, x_title: str, systems: dict[str, str]) -> pd.DataFrame:
    """A chart of each system beside one another, or below on a phone, and the pairs that are selected on any."""
    places: list[int] = []
    for column, (system, title) in zip(st.columns(len(systems)), systems.items(), strict=True):
        event = column.plotly_chart(
            scores.alike_scatter(scored, x, x_title, {system: title}, theme=state.theme()),
            key=f"alike {x} {system} {len(scored)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
            alt=f"Cosine of the {title} against the {x_title} of {len(scored):,} pairs; the table below lists them",
            config=theme.tools(f"bgt-similarity-{loaded.short}"),
        )
        places += [point["point_index"] for point in event["selection"]["points"]]
    chosen = scored.iloc[[place for place in dict.fromkeys(places) if place < len(scored)]]
    if len(chosen):
        st.markdown(f"**Selected: {len(chosen):,}**")
        listing(chosen, whole=len(chosen) <= WORST)
    else:
        st.caption("Click a point to read its pair.")
    return chosen


def everything(
    loaded: state.Loaded, scored: pd.DataFrame, x: str, caption: str, latex: pd.DataFrame | None = None
) -> None:
    """All pairs, and the export of them; the figure's caption says which model, too."""
    st.markdown(f"**All {len(scored):,} pairs**")
    listing(scored)
    systems = {system: title for system, title in scoring.systems(scored).items() if system != x}
    figure = partial(scores.alike_scatter, scored, x, "gold score" if x == "gold" else "semantic cosine", systems)
    caption = f"n = {len(scored):,}. {caption} {loaded.title}, weights {loaded.short}."
    exports.offer(f"bgt-similarity-{loaded.short}", scored, figure, latex, caption=caption)


def listing(scored: pd.DataFrame, whole: bool = False) -> None:
    """Numbers first, where they are seen; `whole` wraps the sentences."""
    systems = scoring.systems(scored)
    order = [name for name in ("gold", "misjudged", *systems, "left", "right", "overlap", "swer") if name in scored]
    titles = NAMES | {
        system: title.removesuffix(" latent").removesuffix(" (tf-idf)") for system, title in systems.items()
    }
    two, text = (
        st.column_config.NumberColumn(format="%.2f", width=80),
        st.column_config.TextColumn(width=200 if whole else 340),
    )
    columns: dict[str, Any] = {"Left": text, "Right": text}
    columns |= {titles[name]: two for name in order if name not in ("left", "right")}
    columns[NAMES["swer"]] = st.column_config.NumberColumn(
        format="%.2f", width=120, help="Symmetric: 0 for the same words; the more, the less alike"
    )
    st.dataframe(
        scored[order].rename(columns=titles),
        hide_index=True,
        column_config=columns,
        row_height=66 if whole else None,
        alt="Pairs of sentences with every measure",
    )
