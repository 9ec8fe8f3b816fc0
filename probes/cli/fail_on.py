"""`--fail-on`: scores that fail a build."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bgt_core.errors import UsageError
from probes.results.store import Cell
from probes.tasks import find

_RULE = re.compile(r"([\w-]+)(?:/([^<>]+))?([<>])(\d*\.?\d+)")


class Rule(NamedTuple):
    """Fails where a latent's accuracy is below (or above) `bound`; without a latent, where that of any is."""

    task: str
    latent: str | None
    below: bool
    bound: float


def read_rules(texts: Sequence[str]) -> list[Rule]:
    """From TASK<SHARE or TASK/LATENT>SHARE; UsageError for anything else."""
    rules = []
    for text in texts:
        match = _RULE.fullmatch(text.replace(" ", ""))
        if not match or not 0 <= float(match[4]) <= 1:
            raise UsageError(f"--fail-on {text}: expected TASK<SHARE or TASK/LATENT>SHARE, as in gender<0.52.")
        rules.append(Rule(find(match[1]).name, match[2], match[3] == "<", float(match[4])))
    return rules


def failing(rules: Sequence[Rule], cells: Sequence[Cell]) -> list[str]:
    """Where the rules hold, in words; UsageError for a rule of what was not measured."""
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
            raise UsageError(f"--fail-on: nothing was measured for '{'/'.join(filter(None, rule[:2]))}'.")
        for cell, score in scores:
            if (score.accuracy < rule.bound) if rule.below else (score.accuracy > rule.bound):
                how = "below" if rule.below else "above"
                lines.append(
                    f"{score.task} {score.lang}, {cell.model} {score.latent}: {score.accuracy:.4f} is {how} "
                    f"{rule.bound:g}"
                )
    return lines
