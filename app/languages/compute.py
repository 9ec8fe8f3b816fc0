"""The gaps of both latents in each language beside the paper's, and their relation to the distance from English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from app.core import state
from app.core.results import reading, task_names
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from probes.results.languages import (
    FSI_WEEKS,
    PAPER_ORDER,
    URIEL_SYNTAX,
    LanguageGap,
    Trend,
    by_task,
    gap_trend,
    other_language,
    published,
    standard_error,
)

DISTANCES: dict[str, tuple[Mapping[str, float], str]] = {
    "weeks": (FSI_WEEKS, "Weeks an English speaker needs to learn it (Foreign Service Institute)"),
    "syntax": (URIEL_SYNTAX, "Angular distance of syntactic features (URIEL)"),
    "paper": (PAPER_ORDER, "The paper's order: close, more distant, very distant"),
}
SHARED_FORM = ("length", "punct-num", "punct-first")  # form that translations mostly share
EXPECTED = dict.fromkeys((*SHARED_FORM, "gender"), -1)  # the second latent should lead, as on all that a language adds
MUCH = 10  # times the second latent's information: a semantic latent with more holds the form of a sentence too


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Semantic minus second latent, with `other`, the language of each model besides English, and `paper_gap`, the
    paper's difference in points, NaN if it has none.

    `other` is the probed language; for English it is the other language of a bilingual model. The paper has numbers of
    language latents only.
    """
    own = gaps[(gaps["first"] == SEMANTIC) & gaps["second"].isin((LANGUAGE, SYNTACTIC))]
    others = [other_language(row.lang, row.langs.split()) for row in own.itertuples()]
    cells = [
        published(other, row.task, row.lang) if row.second == LANGUAGE else None
        for other, row in zip(others, own.itertuples(), strict=True)
    ]
    return own.assign(other=others, paper_gap=[float("nan") if cell is None else cell.gap for cell in cells])


def verdict(gaps: pd.DataFrame) -> tuple[str, list[str]]:
    """Count the results that agree with the paper's claim, by intervals; also return the tasks that contradict it."""
    signs = {task_names.MEANING: 1, task_names.ADDED: -1}
    expected = [EXPECTED.get(task, signs.get(task_names.group(task), 0)) for task in gaps["task"]]
    low, high = (gaps[end] * expected for end in ("ci_low", "ci_high"))
    claimed, agree, against = sum(sign != 0 for sign in expected), low.clip(upper=high) > 0, high.clip(lower=low) < 0
    contrary = task_names.ordered(gaps.loc[against, "task"].unique().tolist())
    named = f" ({', '.join(task_names.title(task).lower() for task in contrary)})" if contrary else ""
    unclear = claimed - agree.sum() - against.sum()
    return (
        f"The paper's claim covers {claimed} of these results: {agree.sum()} agree, {against.sum()} contradict "
        f"it{named}, and of {unclear} the interval holds zero."
    ), contrary


def reason(loaded: state.Loaded, contrary: Sequence[str]) -> str:
    """Why this model contradicts the claim in the form that translations share; "" if it doesn't, or if its semantic
    latent holds too little for the reason to be true."""
    own, both = reading.nats(loaded.log, loaded.langs)
    if set(SHARED_FORM).isdisjoint(contrary) or not both > MUCH * own:
        return ""
    return (
        f"Why: the semantic latent of {loaded.title} holds {both - own:,.0f} nats of a sentence, enough to write it "
        "again, so it holds length and marks too, which translations mostly share. An average of token vectors holds "
        "less: from the units of bgt-en-fr that are one, a probe tells the English length in 24 %, guessing in 21 %."
    )


def trends(gaps: pd.DataFrame, by: str) -> dict[str, Trend]:
    """Relate the gap of each task to the distance from English, for tasks with three languages or more."""
    distances, _ = DISTANCES[by]
    measured = [
        LanguageGap(row.other, row.task, row.points, standard_error(row.ci_low, row.ci_high))
        for row in gaps.itertuples()
    ]
    of_tasks = {task: gap_trend(by_language, distances) for task, by_language in by_task(measured).items()}
    return {task: trend for task, trend in of_tasks.items() if trend}
