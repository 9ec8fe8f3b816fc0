"""Negations, numbers and marks, in sentences written for the purpose."""

from __future__ import annotations

import pytest

from bgt_core.evaluation.fidelity.kept import digits, final_mark, has_negation, length, numbers


@pytest.mark.parametrize(
    ("lang", "text", "negated"),
    [
        ("en", "We were not able to find a hotel.", True),
        ("en", "I don't know.", True),
        ("en", "I don’t know.", True),
        ("en", "Nobody came.", True),
        ("en", "I know another knot.", False),
        ("en", "Note the nightmare.", False),
        ("fr", "Je ne sais pas.", True),
        ("fr", "Je n'ai rien vu.", True),
        ("fr", "Je n’ai vu personne.", True),
        ("fr", "Personne n'est venu.", True),
        ("fr", "Jamais je ne mentirai.", True),
        ("fr", "C'est pas grave.", True),
        ("fr", "Il fait un pas.", False),
        ("fr", "Il a plus de pain.", False),
        ("fr", "Il n'a que du pain.", False),
        ("fr", "Une personne est là.", False),
        ("fr", "La neige est noire.", False),
        ("es", "No vino nadie.", True),
        ("es", "Ninguna casa es azul.", True),
        ("es", "Nora nota la noche.", False),
        ("de", "Ich habe keinen Hund.", True),
        ("de", "Er kommt nie.", True),
        ("de", "Die Niederlage war klein.", False),
        ("xx", "not never no", None),
    ],
)
def test_negations(lang: str, text: str, negated: bool | None) -> None:
    assert has_negation(text, lang) is negated
    assert has_negation(text.upper(), lang) is negated


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", "Two men and 3 dogs.", ["2", "3"]),
        ("en", "It costs $3.50, not 1,000.", ["1,000", "3.50"]),
        ("en", "Twenty-five people", ["20", "5"]),
        ("en", "The one who often waits", []),
        ("fr", "Dix-sept ans, quatre-vingt-dix euros.", ["17", "90"]),
        ("fr", "Quatre-vingt-deux", ["2", "4", "20"]),
        ("de", "Zwei Hunde in zwölf Häusern", ["12", "2"]),
        ("es", "Tres mil", ["1000", "3"]),
        ("xx", "two 2", ["2"]),
    ],
)
def test_numbers(lang: str, text: str, expected: list[str]) -> None:
    assert numbers(text, lang) == sorted(expected)


def test_digits_are_those_written() -> None:
    assert digits("In 1963, at 2:30, 5 men paid 1.50.") == sorted(["1963", "2:30", "5", "1.50"])
    assert digits("two") == []


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is late.", "."),
        ("Où est-il ?", "?"),
        ("« Viens ! »", "!"),
        ('He said "no".', "."),
        ("Well...", "..."),
        ("Well…", "..."),
        ("どこですか？", "?"),
        ("أين هو؟", "?"),
        ("no mark", ""),
        ("colon:", ""),
        ("", ""),
    ],
)
def test_final_marks(text: str, mark: str) -> None:
    assert final_mark(text) == mark


def test_lengths_are_of_words_or_where_there_are_no_spaces_of_characters() -> None:
    assert (length("It is late.", "en"), length("遅い です", "ja")) == (3, 4)
