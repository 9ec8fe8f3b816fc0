"""Both latents, language by language: their gaps, the paper's, and how they go with distance to English."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.reproduce.distance import FSI_WEEKS, PAPER_ORDER, Trend, trend
from probes.results.published import published

DISTANCES = {"weeks": (FSI_WEEKS, "Weeks until English speakers speak it (Foreign Service Institute)"),
             "paper": (PAPER_ORDER, "The paper's order: close, more distant, very distant")}  # fmt: skip
PAPER = ["paper_semantic", "paper_language", "paper_gap"]  # percent, percent, points; empty where it has nothing


def placed(gaps: pd.DataFrame) -> pd.DataFrame:
    """The gaps of semantic minus language, with `other`, the language each model sets beside English, and `PAPER`.

    That is the probed language, and for English the other one of a model that has two.
    """
    wanted = gaps[(gaps["first"] == SEMANTIC) & (gaps["second"] == LANGUAGE)]
    others = [other_language(row.lang, row.langs.split()) for row in wanted.itertuples()]
    paper = [published(other, row.task, row.lang) for other, row in zip(others, wanted.itertuples(), strict=True)]
    told = [(None, None, None) if one is None else (one.semantic, one.language, one.gap) for one in paper]
    return wanted.assign(other=others).join(pd.DataFrame(told, wanted.index, PAPER, dtype=float))


def other_language(lang: str, langs: Sequence[str]) -> str:
    rest = [other for other in langs if other != "en"]
    return rest[0] if lang == "en" and len(rest) == 1 else lang


def both(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of the two latents."""
    return scores[scores["latent"].isin([SEMANTIC, LANGUAGE])]


def trends(gaps: pd.DataFrame, by: str) -> dict[str, Trend]:
    """How the gap of each task goes with distance to English, for tasks with three languages and more."""
    weeks, _ = DISTANCES[by]
    found = {}
    for task, part in gaps[gaps["other"].isin(weeks)].groupby("task", sort=False):
        mean = part.groupby("other")["points"].mean().to_dict()
        if len(mean) >= 3 and len(set(mean.values())) > 1 and len({weeks[lang] for lang in mean}) > 1:
            found[task] = trend(mean, weeks)
    return found
