"""Checks of a generated sentence, on cases labelled by hand."""

from __future__ import annotations

import pytest

from bgt_core.evaluation.fidelity.checks import checks, differences

CASES = [
    ("The boy gave the girl a book.", "the girl gave the boy a book.", "order of words changed"),
    ("The dog bit the man.", "the man bit the dog.", "order of words changed"),
    ("I did not say that he was wrong.", "tom said he was wrong.", "negation lost, much shorter"),
    ("She likes tea.", "she doesn't like tea.", "negation added"),
    ("We met Tom in Paris.", "we met tom in rome.", "Paris lost"),
    ("It took three days.", "it took four days.", "3 lost"),
    ("It took three days.", "it took 3 days!", ""),
    ("You can swim.", "can you swim?", ""),
    ("Stop!", "stop it right now, will you please?", "much longer"),
]


@pytest.mark.parametrize(("source", "output", "changed"), CASES)
def test_a_change_is_named_and_nothing_else(source: str, output: str, changed: str) -> None:
    assert differences(checks(source, "en", output, "en")) == changed


def test_across_languages_negation_and_numbers_count_alone() -> None:
    verdicts = [check.verdict for check in checks("Tom does not have three cats.", "en", "il a trois chats", "fr")]
    assert verdicts == ["negation lost", "numbers kept"]


def test_a_check_that_does_not_apply_is_left_out() -> None:
    assert checks("Good morning.", "en", "bonjour", "fr") == []
    assert checks("猫が好きです。", "ja", "猫が好きです。", "ja") == []
    assert checks("Hallo.", "xx", "Hallo.", "xx") == []
