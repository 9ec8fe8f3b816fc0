"""Accuracies of probes on each latent, beside the best baseline."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.core.results import task_names
from app.core.results.lines import Lines, edge, papers
from app.core.rows import language_name
from app.core.theme import SOFT, bars, latent_colour, plain
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.columns import split_langs
from probes.result import is_baseline

# symbols of the latents; other rows are baselines
LATENTS = {SEMANTIC: "circle", LANGUAGE: "diamond", SYNTACTIC: "diamond"}
LINE = ["task", "lang", "model", "mark"]  # columns that identify a line of the figure
RUN_HERE = "Run here"
BASELINE = "best baseline"
TITLES = {"accuracy": "Test accuracy, %, with 95% intervals", "compression": "Compression by online codelength"}


def probe_dots(
    scores: pd.DataFrame, by: str = "accuracy", paper: pd.DataFrame | None = None, theme: str = "light"
) -> go.Figure:
    """Each latent's accuracy with its interval, and a tick for the best baseline; or `by` "compression".

    Columns `gather.SCORES`. One line per result, those run here first, then by the group of the task and by the
    gap of the latents. `paper`: rows of `app.languages.compute.with_paper`, whose accuracies are open and grey.
    """
    figure = go.Figure()
    lines = Lines(figure, theme)
    y: dict[tuple[str, ...], float] = {}
    several = scores["model"].nunique() > 1
    for group, part in in_order(scores, by).groupby("group", sort=False):
        lines.heading(str(group), (25, 50, 75, 100) if by == "accuracy" else ())
        for row in part.itertuples():
            y[key(row)] = lines.row(label(row, several), row.mark, row.live)
    scale = 100 if by == "accuracy" else 1
    for latent in [latent for latent in LATENTS if latent in set(scores["latent"])]:
        part = scores[scores["latent"] == latent]
        interval = bars(100 * part["accuracy"], 100 * part["ci_low"], 100 * part["ci_high"])
        figure.add_trace(
            go.Scatter(
                x=scale * part[by],
                y=[y[key(row)] for row in part.itertuples()],
                name=plain(latent),
                mode="markers",
                marker=edge(11, LATENTS[latent], latent_colour(latent, theme)),
                error_x=interval if by == "accuracy" else None,
                text=[label(row, several) for row in part.itertuples()],
                hovertemplate="%{text}<br>" + plain(latent) + " %{x:.1f}<extra></extra>",
            )
        )
    if by == "accuracy":
        add_baselines(figure, scores, y, theme)
    if paper is not None and paper["paper_gap"].notna().any():
        add_paper(figure, paper.dropna(subset=["paper_gap"]), y, theme)
    figure = lines.finished(TITLES[by])
    figure.update_xaxes(title=None, **{"range": [0, 100], "dtick": 25} if by == "accuracy" else {})
    return figure


def add_baselines(figure: go.Figure, scores: pd.DataFrame, y: dict[tuple[str, ...], float], theme: str) -> None:
    """Draw a tick for the best baseline; its hover text lists all of them."""
    rivals = [is_baseline(name, list(LATENTS)) for name in scores["latent"]]
    baselines = scores[rivals].sort_values("accuracy", ascending=False)
    best = baselines.drop_duplicates(LINE)
    texts = {
        name: "<br>".join(f"{plain(row.latent)} {100 * row.accuracy:.1f}" for row in part.itertuples())
        for name, part in baselines.groupby(LINE)
    }
    figure.add_trace(
        go.Scatter(
            x=100 * best["accuracy"],
            y=[y[key(row)] for row in best.itertuples()],
            name=BASELINE,
            mode="markers",
            marker={"size": 16, "symbol": "line-ns", "line": {"width": 2.5, "color": SOFT[theme]}},
            text=[texts[key(row)] for row in best.itertuples()],
            hovertemplate="Baselines<br>%{text}<extra></extra>",
            visible=len(best) > 0,
        )
    )


def add_paper(figure: go.Figure, published: pd.DataFrame, y: dict[tuple[str, ...], float], theme: str) -> None:
    for latent in (SEMANTIC, LANGUAGE):
        title = f"the paper, {latent} (open, grey)"
        figure.add_trace(
            go.Scatter(
                x=published[f"paper_{latent}"],
                y=[y[key(row)] for row in published.itertuples()],
                name=title,
                mode="markers",
                marker=papers(LATENTS[latent], SOFT[theme]),
                hovertemplate=title + " %{x:.1f}<extra></extra>",
            )
        )


def in_order(scores: pd.DataFrame, by: str) -> pd.DataFrame:
    """One row per line of the figure, with the columns `LINE`, live, group and gap. Results that were run here come
    first, then the groups of tasks, sorted by the lead of the semantic latent."""
    lines = scores.drop_duplicates(LINE)[[*LINE, "live"]]
    values = scores[scores["latent"].isin(list(LATENTS))].pivot_table(by, LINE, "latent", sort=False)
    second = values[[name for name in (LANGUAGE, SYNTACTIC) if name in values]].bfill(axis=1)
    gaps = values.get(SEMANTIC, 0) - (second.iloc[:, 0] if len(second.columns) else 0)
    lines = lines.merge(gaps.rename("gap").reset_index(), "left", LINE)
    names = [RUN_HERE, *task_names.GROUPS, task_names.OTHERS]
    groups = [RUN_HERE if row.live else task_names.group(row.task) for row in lines.itertuples()]
    lines = lines.assign(
        group=groups,
        place=[names.index(group) for group in groups],
        mean=lines.groupby("task")["gap"].transform("mean"),
    )
    live, stored = lines[lines["place"] == 0], lines[lines["place"] > 0]
    stored = stored.sort_values(["place", "mean", "task", "gap"], ascending=[True, False, True, False], kind="stable")
    return pd.concat([live, stored])


def key(row: Any) -> tuple[str, ...]:
    return row.task, row.lang, row.model, row.mark


def label(row: Any, several: bool) -> str:
    """The name of a line of a figure; with the model if there are several."""
    names = [language_name(lang) for lang in split_langs(row.lang)]
    parts = [task_names.title(row.task), " and ".join(names), *([row.model] if several else [])]
    return plain(" · ".join(parts))
