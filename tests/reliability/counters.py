"""The counters of `bgt evaluate fidelity` on sentences written and labelled by hand: counters.tsv, beside this file.

A line is: counter, language, what it should say, a sentence. "?" is a quantity that is not certain, which `numbers`
leaves out. `python -m tests.reliability.counters` prints the table of docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bgt_core.evaluation.facts import has_negation, names, numbers

CASES = Path(__file__).with_name("counters.tsv")
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")
LEAST = 0.95  # minimum share of right cases; below it, the counter is not used for the language
COUNTERS: dict[str, Callable[[str, str], object]] = {"negation": has_negation, "numbers": numbers, "names": names}


class Case(NamedTuple):
    """A sentence and what a counter should say of it."""

    counter: str
    lang: str
    expected: bool | list[str] | None
    text: str

    @property
    def right(self) -> bool:
        return COUNTERS[self.counter](self.text, self.lang) == self.expected


def read_cases() -> list[Case]:
    """All of the file, in its order."""
    cases = []
    for line in CASES.read_text("utf-8").splitlines()[1:]:
        counter, lang, expected, text = line.split("\t")
        values = None if expected == "?" else sorted(filter(None, expected.split(",")))
        cases.append(Case(counter, lang, expected == "yes" if counter == "negation" else values, text))
    return cases


def left_out(counter: str, lang: str) -> bool:
    """Whether the counter says nothing of any sentence of the language."""
    return COUNTERS[counter]("", lang) is None


def table() -> str:
    """For each counter and language how many cases are right, of how many."""
    lines = [f"| counter | {' | '.join(LANGS)} |", f"|---|{'---:|' * len(LANGS)}"]
    cases = read_cases()
    for counter in COUNTERS:
        cells = []
        for lang in LANGS:
            right = [case.right for case in cases if (case.counter, case.lang) == (counter, lang)]
            cells.append("left out" if left_out(counter, lang) else f"{sum(right)} of {len(right)}")
        lines.append(f"| {counter} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
