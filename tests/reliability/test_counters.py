"""Test the counters of `bgt evaluate fidelity` on the sentences in counters.tsv, written and labelled by hand.

A line has a counter, a language, the expected result and a sentence. For a sentence with an uncertain quantity, the
result is "?", and the counter `numbers` must skip it. `python -m tests.reliability.test_counters` prints the table in
docs/reliability.md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bgt_core.evaluation.facts import has_negation, names, numbers

LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")
LEAST = 0.95  # a counter must skip a language in which a smaller share of its cases is right
COUNTERS: dict[str, Callable[[str, str], object]] = {"negation": has_negation, "numbers": numbers, "names": names}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


class Case(NamedTuple):
    """A sentence, and the result that a counter must return for it."""

    counter: str
    lang: str
    expected: bool | list[str] | None
    text: str

    @property
    def right(self) -> bool:
        return COUNTERS[self.counter](self.text, self.lang) == self.expected


CASES = []
for line in Path(__file__).with_name("counters.tsv").read_text("utf-8").splitlines()[1:]:
    counter, lang, expected, text = line.split("\t")
    values = None if expected == "?" else sorted(filter(None, expected.split(",")))
    CASES.append(Case(counter, lang, expected == "yes" if counter == "negation" else values, text))


def cases_of(counter: str, lang: str) -> list[Case]:
    return [case for case in CASES if (case.counter, case.lang) == (counter, lang)]


def table() -> str:
    """Return a table: the share of right cases for each counter and language, or "left out" if it is unsupported."""
    lines = [f"| counter | {' | '.join(LANGS)} |", f"|---|{'---:|' * len(LANGS)}"]
    for counter in COUNTERS:
        cells = []
        for lang in LANGS:
            right = [case.right for case in cases_of(counter, lang)]
            left_out = COUNTERS[counter]("", lang) is None
            cells.append("left out" if left_out else f"{sum(right)} of {len(right)}")
        lines.append(f"| {counter} | {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_language_is_counted_well_or_left_out(counter: str, lang: str) -> None:
    cases = cases_of(counter, lang)
    if COUNTERS[counter]("", lang) is None:
        assert all(COUNTERS[counter](case.text, lang) is None for case in cases)
    else:
        wrong = [case.text for case in cases if not case.right]
        assert 1 - len(wrong) / len(cases) >= LEAST, wrong


def test_the_documentation_says_how_well() -> None:
    page = PAGE.read_text("utf-8")
    assert f"<!-- counters -->\n{table()}\n<!-- end of counters -->" in page and f"{len(CASES)} sentences" in page


if __name__ == "__main__":
    print(table())
