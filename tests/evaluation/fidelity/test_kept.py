"""Negations, numbers and marks, in sentences written for the purpose."""

from __future__ import annotations

import pytest

from bgt_core.evaluation.fidelity.kept import digits, has_negation, length, names, numbers, words


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
        ("fr", "Quelques pas plus loin, il avance pas à pas dans le Pas-de-Calais.", False),
        ("fr", "Je crains qu'il ne vienne plus tard.", False),
        ("fr", "Plus jamais !", True),
        ("fr", "Ni toi ni moi.", True),
        ("fr", "Nulle part.", True),
        ("en", "I don´t know.", True),
        ("en", "Room No. 5", False),
        ("en", "It's late, isn't it?No.", True),
        ("de", "Das hat keinerlei Sinn.", True),
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
        ("en", "It costs $3.50, not 1,000.", ["1000", "3.5"]),
        ("en", "Twenty-five people", ["25"]),
        ("en", "The one who often waits", []),
        ("en", "dozens", None),
        ("fr", "Dix-sept ans, quatre-vingt-dix euros.", ["17", "90"]),
        ("fr", "Quatre-vingt-deux", ["82"]),
        ("fr", "deux cents", ["200"]),
        ("fr-CA", "Trois millions, ou 3 millions", ["3000000", "3000000"]),
        ("de", "Zwei Hunde in zwölf Häusern", ["12", "2"]),
        ("es", "Tres mil", ["3000"]),
        ("es", "Veintiún perros", ["21"]),
        ("fr", "10 000 personnes", ["10000"]),
        ("fr", "1\u00a0000\u202f000 de 999", ["1000000", "999"]),
        ("en", "12 3456 men", ["12", "3456"]),
        ("en", "zero dogs", ["0"]),
        ("en", "On the 3rd day, 5 men", ["5"]),
        ("fr", "Le 2e et 4 chiens", ["4"]),
        ("fr", "1,5 litre", ["1.5"]),
        ("de", "1.234,5 Euro", ["1234.5"]),
        ("en", "1.5 million dogs", ["1500000"]),
        ("en", "at 2:30 thousand men", ["1000", "2:30"]),
        ("ja", "３人", None),
        ("xx", "two 2", None),
    ],
)
def test_numbers(lang: str, text: str, expected: list[str] | None) -> None:
    assert numbers(text, lang) == (expected and sorted(expected))


@pytest.mark.parametrize(
    ("lang", "digits", "words"),
    [
        ("en", "10,000 people in 1945", "Ten thousand people in nineteen forty-five"),
        ("fr", "22 hommes, 80 femmes et 21 enfants", "Vingt-deux hommes, quatre-vingts femmes et vingt et un enfants"),
        ("es", "21 casas y 200 árboles", "Veintiuna casas y doscientos árboles"),
        ("de", "21 Hunde und 2 Millionen Katzen", "Einundzwanzig Hunde und zwei Millionen Katzen"),
    ],
)
def test_a_number_is_the_same_in_digits_and_in_words(lang: str, digits: str, words: str) -> None:
    assert numbers(digits, lang) == numbers(words, lang) != []


def test_another_number_is_another() -> None:
    for one, other in (("deux cents ans", "deux ans"), ("trois millions de", "trois"), ("vingt et un", "vingt")):
        assert numbers(one, "fr") != numbers(other, "fr")


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", "Yesterday Tom's dog met Mr. Smith and I.", ["Smith", "Tom"]),
        ("fr", "« Viens ! » Demain, l'Italie jouera. Anne aussi.", ["Italie"]),
        ("tr", "Dün Ankara'ya gittik.", ["Ankara"]),
        ("de", "Der Hund von Anna", None),
    ],
)
def test_names_have_a_capital_within_a_sentence(lang: str, text: str, expected: list[str] | None) -> None:
    assert names(text, lang) == expected


def test_words_come_after_what_stands_before_them_in_any_language() -> None:
    assert list(words("Hola, d'Ana.", "es")) == [("", "Hola"), ("Hola, ", "d'Ana")]
    assert list(words("Bonjour d'Ana.", "fr")) == [("", "Bonjour"), ("Bonjour ", "Ana")]


def test_digits_are_those_written() -> None:
    assert digits("In 1963, at 2:30, 5 men paid 1.50.") == sorted(["1963", "2:30", "5", "1.50"])
    assert digits("two") == []
    assert digits("３人 و ٢٥") == ["25", "3"]


def test_lengths_are_of_words_or_where_there_are_no_spaces_of_characters() -> None:
    assert (length("It is late.", "en"), length("遅い です", "ja"), length("很晚了", "zh-Hant")) == (3, 4, 3)
