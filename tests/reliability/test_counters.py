"""The counters of `bgt evaluate fidelity` on sentences labelled by hand, and what the documentation says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.reliability.counters import COUNTERS, LANGS, LEAST, left_out, read_cases, table

CASES = read_cases()
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


def test_there_are_enough_cases_of_every_kind() -> None:
    counts = Counter((case.counter, case.lang) for case in CASES)
    assert len(CASES) >= 300 and len({(case.counter, case.text) for case in CASES}) == len(CASES)
    assert set(counts) == {(counter, lang) for counter in COUNTERS for lang in LANGS}
    assert min(counts.values()) >= 10
    for lang in LANGS:
        negated = [case.expected for case in CASES if (case.counter, case.lang) == ("negation", lang)]
        assert 0.3 < sum(negated) / len(negated) < 0.8


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_language_is_counted_well_or_left_out(counter: str, lang: str) -> None:
    cases = [case for case in CASES if (case.counter, case.lang) == (counter, lang)]
    if left_out(counter, lang):
        assert all(COUNTERS[counter](case.text, lang) is None for case in cases)
    else:
        wrong = [case.text for case in cases if not case.right]
        assert 1 - len(wrong) / len(cases) >= LEAST, wrong


def test_the_documentation_says_how_well() -> None:
    assert f"<!-- counters -->\n{table()}\n<!-- end of counters -->" in PAGE.read_text("utf-8")
    assert f"{len(CASES)} sentences" in PAGE.read_text("utf-8")
