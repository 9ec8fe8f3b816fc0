"""`--fail-on`: rules on scores; the exit code tells whether one was broken."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from bgt_core.errors import UsageError
from probes.results.store import Cell
from probes.tasks import find

_RULE = re.compile(r"([\w-]+)(?:/([^<>]+))?([<>])(\d*\.?\d+)")


class Rule(NamedTuple):
    """Fails if a latent's accuracy is below (or above) `bound`; without a latent, if that of any latent is."""

    task: str
    latent: str | None
    below: bool
    bound: float


def read_rules(texts: Sequence[str], tasks: Collection[str] = ()) -> list[Rule]:
    """Read rules of the form TASK<SHARE or TASK/LATENT>SHARE; raise UsageError for other forms.

    `tasks` are names of the user's own tasks.
    """
    rules = []
    for text in texts:
        match = _RULE.fullmatch(text.replace(" ", ""))
        if not match or not 0 <= float(match[4]) <= 1:
            message = f"{text}: expected TASK<SHARE or TASK/LATENT>SHARE, as in gender<0.52."
            raise UsageError(message, parameter="fail_on")
        if match[1] not in tasks:
            find(match[1])
        rules.append(Rule(match[1], match[2], match[3] == "<", float(match[4])))
    return rules


def failing(rules: Sequence[Rule], cells: Sequence[Cell]) -> list[str]:
    """List a line for each score that breaks a rule; raise UsageError for a rule on a task or latent not measured."""
    lines = []
    for rule in rules:
        scores = [
            (cell, score)
            for cell in cells
            if cell.result.task == rule.task
            for score in cell.result.rows
            if score.latent == rule.latent or (rule.latent is None and score.latent in cell.trail["latents"])
        ]
        if not scores:
            names = "/".join(filter(None, rule[:2]))
            raise UsageError(f"{names}: was not measured.", parameter="fail_on")
        for cell, score in scores:
            if (score.accuracy < rule.bound) if rule.below else (score.accuracy > rule.bound):
                how = "below" if rule.below else "above"
                label = f"{score.task} {score.lang}, {cell.model} {score.latent}"
                lines.append(f"{label}: {score.accuracy:.4f} is {how} {rule.bound:g}")
    return lines
