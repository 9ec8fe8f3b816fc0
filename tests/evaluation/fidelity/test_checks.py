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
    ("We met Tom and Mary.", "we met ann and bob.", "Mary, Tom lost"),
    ("Cats eat fish.", "fish eat cats.", "order of words changed"),
    ("Birds sing.", "they sing, the birds.", "order of words changed, much longer"),
    ("One two three four.", "one two three four five six.", ""),  # longer by half
    ("One two three four five six.", "one two three four.", "5, 6 lost"),
    ("Red green blue.", "red green blue black white.", "much longer"),
]


@pytest.mark.parametrize(("source", "output", "changed"), CASES)
def test_a_change_is_named_and_nothing_else(source: str, output: str, changed: str) -> None:
    assert differences(checks(source, "en", output, "en")) == changed


def test_what_was_kept_is_named_too() -> None:
    checked = checks("Tom does not see 2 cats.", "en", "tom doesn't see two cats.", "en")
    assert checked == [(True, "negation kept"), (True, "numbers kept"), (True, "order of words kept")]
    assert checks("I saw Tom.", "en", "i saw tom.", "en") == [(True, "names kept"), (True, "order of words kept")]
    assert checks("No.", "en", "it is not late at all.", "en")[-1] == (False, "much longer")


@pytest.mark.parametrize(
    ("source", "output", "lang", "changed"),
    [
        ("Asseyez-vous.", "asseyez-vous ?", "fr", ""),
        ("Asseyez-vous.", "« asseyez-vous » !", "fr", ""),
        ("Quoi ?", "quoi", "fr", ""),
        ("Attendez... ici.", "attendez - … - ici !", "fr", ""),
        ("Assez !", "mais c'est assez !", "fr", "much longer"),
        ("はい。", "はい！！！", "ja", ""),
        ("私は学生です。", "学生。", "ja", "much shorter"),
        ("เขามา", "เขามา! ! !", "th", ""),
        ("¿Qué?", "¡ qué !", "es", ""),
        ("!", "? ! ?", "en", ""),
    ],
)
def test_marks_are_not_length(source: str, output: str, lang: str, changed: str) -> None:
    assert differences(checks(source, lang, output, lang)) == changed


def test_the_order_of_a_few_words_says_nothing_good() -> None:
    source = "The old man saw the red car near the house."
    assert "order of words kept" not in {check.verdict for check in checks(source, "en", "An old red bus.", "en")}
    assert "order of words changed" in {check.verdict for check in checks(source, "en", "A red old bus.", "en")}


def test_across_languages_negation_and_numbers_count_alone() -> None:
    verdicts = [check.verdict for check in checks("Tom does not have three cats.", "en", "il a trois chats", "fr")]
    assert verdicts == ["negation lost", "numbers kept"]


def test_a_check_that_does_not_apply_is_left_out() -> None:
    assert checks("Good morning.", "en", "bonjour", "fr") == []
    assert checks("猫が好きです。", "ja", "猫が好きです。", "ja") == []
    assert checks("Hallo.", "xx", "Hallo.", "xx") == []
