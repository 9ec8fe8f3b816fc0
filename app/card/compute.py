"""A model's paper, the meaning of its settings, its scores with their intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from app.core import state
from bgt_core.evaluation.bootstrap import wilson
from probes.result import MAJORITY

PROBE_TITLES = {"punct-num": "Punctuation"}  # in the scores of a card, if not the task's name
UNTRAINED = "untrained "  # prefix of a card's columns for the model before training
HERE = Path(__file__).parent
BGT = "wieting2020bilingual"
ADDRESSES = {  # of the papers in `papers.bib`
    BGT: "https://aclanthology.org/2020.emnlp-main.122/",
    "chen2019multitask": "https://aclanthology.org/N19-1254/",
    "wieting2017backtranslated": "https://aclanthology.org/D17-1026/",
}
PAPERS = {  # by recipe; others: BGT's
    "vgvae": "chen2019multitask", **dict.fromkeys(("avg", "gran", "translator"), "wieting2017backtranslated"),
}  # fmt: skip
ENDS = ("low", "high")  # columns of a card with the interval of its column "score"
ONE_DIGIT = re.compile(r"%|x 100|chrF|BLEU")  # scores of these units have one decimal, cosines and correlations two


class Paper(NamedTuple):
    """The publication of a model."""

    address: str
    bibtex: str


def paper(loaded: state.Loaded) -> Paper:
    """Return the paper that introduced a recipe's model."""
    name = PAPERS.get(loaded.info.get("recipe", ""), BGT)
    entries = (HERE / "papers.bib").read_text("utf-8").strip().split("\n\n")
    return Paper(ADDRESSES[name], next(entry for entry in entries if name in entry))


@cache
def meanings() -> dict[str, str]:
    """What settings mean in a few words, by the end of their names."""
    return dict(line.split("\t") for line in (HERE / "settings.tsv").read_text("utf-8").splitlines())


def readable(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return ", ".join(map(readable, value)) if isinstance(value, list) else str(value)


def cell(measure: str, value: object, ends: tuple[float, float] | None) -> str:
    """Format a number with the decimals of its unit, and its interval."""
    if value is None or isinstance(value, str) or not isinstance(value, int | float) or value != value:
        return "" if value is None or value != value else str(value)
    form = "z.1f" if ONE_DIGIT.search(measure) or abs(value) > 1 else "z.2f"
    interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
    return f"{value:{form}}{interval}"


def intervals(card: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Derive the intervals of a card's scores, by measure and column, in percent, from the numbers that it gives:
    Wilson's of precision at 1, if it names the number of translations, and those of its probes."""
    ends = {}
    how = next((str(row["how"]) for row in card.get("protocol", []) if row["score"] == "Retrieval"), "")
    among = re.search(r"among ([\d,]+) translations", how)
    count = int(among[1].replace(",", "")) if among else 0
    for measure, row in card["scores"].items():
        if count and measure.startswith("Retrieval") and isinstance(row, Mapping):
            for column, value in row.items():
                low, high = wilson(value / 100 * count, count)
                ends[measure, column] = (100 * low, 100 * high)
    for row in card.get("probes", []):
        title = PROBE_TITLES.get(row["task"], row["task"].capitalize())
        column = "baseline" if row["latent"] == MAJORITY else row["latent"]
        ends[f"{title} probe, accuracy %", column] = (100 * row["ci_low"], 100 * row["ci_high"])
    return ends


def score_table(
    measures: Mapping[str, float | Mapping[str, float]], intervals: Mapping[tuple[str, str], tuple[float, float]]
) -> pd.DataFrame:
    """One row per measure, and one for the same measure before training; cells are texts with intervals."""
    table = {name: value if isinstance(value, Mapping) else {"score": value} for name, value in measures.items()}
    names = dict.fromkeys(column.removeprefix(UNTRAINED) for row in table.values() for column in row)
    columns = [column for column in names if column not in ENDS]
    lines = []
    for measure, row in table.items():
        # more columns would not fit a phone
        for before, title in (("", measure), (UNTRAINED, f"{measure}, untrained")):
            keys = [before + column for column in columns]
            own = {"score": (row["low"], row["high"])} if {*ENDS} <= {*row} else {}
            ends = [intervals.get((measure, key)) or own.get(key) for key in keys]
            if {*keys} & {*row}:
                lines.append([title, *(cell(measure, row.get(key), end) for key, end in zip(keys, ends, strict=True))])
    return pd.DataFrame(lines, columns=["Measure", *map(str.capitalize, columns)])
