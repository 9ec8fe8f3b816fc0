"""Draw results of probes: each latent's accuracy and the best baseline's, or the difference between two latents. A
row has the results of all models for a task and language; its label is left of the points, the task's name above."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from app.core import display
from app.core.results import OTHER_TASKS, TASK_GROUPS, language_names, other_sentences, task_group, task_title
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from probes.results.store import is_baseline

# Latent -> plotly symbol of its results. All other results are of baselines.
LATENTS = {SEMANTIC: "circle", LANGUAGE: "diamond", SYNTACTIC: "diamond"}
FILLS = ("", "-open", "-dot", "-open-dot")  # ends of plotly's names of symbols, one per model
LINE = ["task", "lang", "model", "mark"]  # columns whose values identify a result
RUN_HERE = "Run here"
OTHERS = "other sentences"  # second line of a label, if the models were not trained and tested on the same sentences
BASELINE = "best baseline"
PAPER = "the paper"
LEFT, LETTERS = 128, 22  # width of the labels, in pixels and in letters
HEADING, TEXT, MODEL = 27, 16, 14  # heights in pixels: a heading, a line of text, the points of one model
NAME, SMALL, MARK, TICK = 12, 11, 8, 11  # sizes in pixels: names, smaller text, points, the tick of the best baseline
HIGHLIGHT = "rgba(230, 159, 0, 0.16)"  # background of results that were computed in this session
GRID = "rgba(128, 128, 128, 0.25)"


@dataclass
class Lines:
    """The rows of a figure, from the top (y = 0) to negative y, in pixels."""

    figure: go.Figure
    theme: str
    total: float = 0.0
    # All texts are added to the figure together, because plotly copies all of them at each addition.
    texts: list[dict[str, Any]] = field(default_factory=list)
    y: dict[tuple[str, ...], float] = field(default_factory=dict)  # values of `LINE` -> y of the result

    def place(self, results: pd.DataFrame, ticks: tuple[int, ...] = ()) -> None:
        """Add rows for `results`, with headings that have `ticks`, values of the x axis."""
        results = in_order(results.assign(unlike=other_sentences(results)))
        for group, of_group in results.groupby("group", sort=False):
            y = self._take(HEADING)
            self._write(f"<b>{group}</b>", y, display.PIXELS["small"])
            font = {"size": SMALL, "color": display.SOFT[self.theme]}
            self.texts += [{"x": tick, "y": y, "text": str(tick), "showarrow": False, "font": font} for tick in ticks]
            for task, of_task in of_group.groupby("task", sort=False):
                self._write(display.plain(task_title(str(task))), self._take(TEXT), NAME)
                for (lang, mark), part in of_task.groupby(["lang", "mark"], sort=False):
                    self._row([language_names(lang), *textwrap.wrap(mark, LETTERS)], part)

    def at(self, results: pd.DataFrame) -> list[float]:
        """Return the y of each result."""
        return [self.y[line] for line in results[LINE].itertuples(index=False, name=None)]

    def points(
        self, results: pd.DataFrame, by: str, value: str, looks: Mapping[str, tuple[str, str, str]], number: str
    ) -> None:
        """Draw a point per result at the number in the column `value`, with the interval from `ci_low` to `ci_high`. In
        `looks`, the column `by` sets (name, symbol, colour); the model sets how the symbol is filled."""
        models = list(results["model"].unique())
        for (kind, model), part in results.groupby([by, "model"], sort=False):
            name, symbol, colour = looks[kind]
            fill = display.cycled(FILLS, models.index(model))
            x, low, high = part[value], part["ci_low"], part["ci_high"]
            titles = [f"{task_title(row.task)} · {language_names(row.lang)} · {model}" for row in part.itertuples()]
            point = go.Scatter(
                x=x,
                y=self.at(part),
                name=display.plain(" · ".join([name, model][: 1 + (len(models) > 1)])),
                mode="markers",
                marker={"size": MARK, "symbol": symbol + fill, "color": colour},
                marker_line={"width": 1.5 if fill else 0.6, "color": display.EDGE},
                error_x={"type": "data", "symmetric": False, "array": high - x, "arrayminus": x - low, "width": 0},
                text=list(map(display.plain, titles)),
                customdata=part["run"],
                hovertemplate=f"%{{text}}<br>{display.plain(name)} {number}<br>%{{customdata}}<extra></extra>",
            )
            self.figure.add_trace(point)

    def finished(self, title: str) -> go.Figure:
        figure = display.finish(self.figure, title, round(70 + self.total + TEXT * len(self.figure.data)), self.theme)
        figure.layout.annotations += tuple(map(go.layout.Annotation, self.texts))
        figure.update_layout(margin_l=LEFT)
        figure.update_yaxes(range=[-self.total, 0], tickvals=[*self.y.values()], showticklabels=False, title=None)
        figure.update_xaxes(showgrid=True)
        for axes in (figure.update_xaxes, figure.update_yaxes):
            axes(gridcolor=GRID, zeroline=False)
        return figure

    def _row(self, label: list[str], results: pd.DataFrame) -> None:
        """Add a row with the lines of a label, and with a line for each result."""
        label += [OTHERS] * any(results["unlike"])
        height = max(TEXT * len(label), MODEL * len(results)) + 2
        middle = self._take(height)
        if any(results["live"]):
            y0, y1 = middle - height / 2, middle + height / 2
            self.figure.add_hrect(y0, y1, fillcolor=HIGHLIGHT, line_width=0, layer="below")
        self._write("<br>".join(map(display.plain, label)), middle, NAME, display.SOFT)
        for at, line in enumerate(results[LINE].itertuples(index=False, name=None)):
            self.y[line] = middle + MODEL * ((len(results) - 1) / 2 - at)

    def _take(self, height: float) -> float:
        """Reserve space, and return the y of its middle."""
        self.total += height
        return -self.total + height / 2

    def _write(self, text: str, y: float, size: int, colours: Mapping[str, str] = display.INK) -> None:
        font = {"size": size, "color": colours[self.theme]}
        place = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": -LEFT, "y": y, "align": "left"}
        self.texts.append({**place, "text": text, "font": font, "showarrow": False, "borderpad": 0})


def probe_dots(scores: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Draw each latent's accuracy with its interval. A tick is the best baseline; its hover text lists all of them."""
    scores = scores.assign(**{name: 100 * scores[name] for name in ("accuracy", "ci_low", "ci_high")})
    latents = scores[scores["latent"].isin(list(LATENTS))]
    values = latents.pivot_table("accuracy", LINE, "latent", sort=False)
    second = values[[name for name in (LANGUAGE, SYNTACTIC) if name in values]].bfill(axis=1)
    leads = values.get(SEMANTIC, 0) - (second.iloc[:, 0] if len(second.columns) else 0)
    results = scores.drop_duplicates(LINE).merge(leads.rename("lead").reset_index(), "left", LINE)
    lines = Lines(go.Figure(), theme)
    lines.place(results, (25, 50, 75, 100))
    looks = {name: (name, LATENTS[name], display.latent_colour(name, theme)) for name in LATENTS}
    lines.points(latents, "latent", "accuracy", looks, "%{x:.1f}")
    rivals = [is_baseline(name, list(LATENTS)) for name in scores["latent"]]
    baselines = scores[rivals].sort_values("accuracy", ascending=False)
    best = baselines.drop_duplicates(LINE)
    texts = {
        line: "<br>".join(f"{display.plain(row.latent)} {row.accuracy:.1f}" for row in part.itertuples())
        for line, part in baselines.groupby(LINE)
    }
    lines.figure.add_trace(
        go.Scatter(
            x=best["accuracy"],
            y=lines.at(best),
            name=BASELINE,
            mode="markers",
            marker={"size": TICK, "symbol": "line-ns", "line": {"width": 2.5, "color": display.SOFT[theme]}},
            text=[texts[line] for line in best[LINE].itertuples(index=False, name=None)],
            hovertemplate="Baselines<br>%{text}<extra></extra>",
            visible=len(best) > 0,
        )
    )
    figure = lines.finished("Test accuracy, %, with 95% intervals")
    figure.update_xaxes(title=None, range=[0, 101], dtick=25)
    return figure


def gap_dots(gaps: pd.DataFrame, theme: str = "light") -> go.Figure:
    """Draw the difference in accuracy between the semantic and the second latent, with its interval. Points have the
    colour and symbol of the language; open grey points are the paper's values. `gaps` comes from `page.with_paper`."""
    figure = go.Figure()
    figure.add_vline(0, line={"color": display.REST, "width": 1.5})
    lines = Lines(figure, theme)
    lines.place(gaps.assign(lead=gaps["points"]))
    looks = {
        lang: (language_names(lang), display.lang_symbol(lang), display.lang_colour(lang, theme))
        for lang in gaps["lang"]
    }
    lines.points(gaps, "lang", "points", looks, "%{x:+.1f} points")
    published = gaps.dropna(subset=["paper_gap"])
    symbols = [f"{display.lang_symbol(lang)}-open" for lang in published["lang"]]
    figure.add_trace(
        go.Scatter(
            x=published["paper_gap"],
            y=lines.at(published),
            name=PAPER,
            mode="markers",
            marker={"size": MARK + 1, "symbol": symbols, "color": display.SOFT[theme], "line": {"width": 1.5}},
            hovertemplate="the paper: %{x:+.1f} points<extra></extra>",
            visible=len(published) > 0,
        )
    )
    figure = lines.finished("Difference of accuracies, points, with 95% intervals")
    figure.update_xaxes(title_text=f"← {' or '.join(gaps['second'].unique())} · semantic →")
    return figure


def in_order(results: pd.DataFrame) -> pd.DataFrame:
    """Sort by the new column `group`, then by the mean of `lead` (difference of both latents) per task and language."""
    names = [RUN_HERE, *TASK_GROUPS, OTHER_TASKS]
    groups = [RUN_HERE if row.live else task_group(row.task) for row in results.itertuples()]
    mean, of_lang = (results.groupby(keys)["lead"].transform("mean") for keys in ("task", ["task", "lang"]))
    results = results.assign(group=groups, place=[names.index(group) for group in groups], mean=mean, of_lang=of_lang)
    live, stored = results[results["place"] == 0], results[results["place"] > 0]
    order = {"place": True, "mean": False, "task": True, "of_lang": False, "lang": True}
    return pd.concat([live, stored.sort_values([*order], ascending=[*order.values()], kind="stable")])
