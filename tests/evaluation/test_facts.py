"""Negations, numbers, names and word classes are recognised as labelled by hand."""

from pathlib import Path

import pytest

from bgt_core.data.examples import example_sentences
from bgt_core.evaluation.facts import checks, classed_words, differences, digits, has_negation, length, names, numbers


@pytest.mark.parametrize(("lang", "text", "negated"), [
    ("en", "Nobody came.", True), ("en", "I know another knot.", False), ("en", "I don´t know.", True),
    ("en", "Room No. 5", False), ("en", "It's late, isn't it?No.", True), ("fr", "Je n'ai rien vu.", True),
    ("fr", "Personne n'est venu.", True), ("fr", "Il n'a que du pain.", False), ("fr", "Plus jamais !", True),
    ("fr", "Quelques pas plus loin, il avance pas à pas dans le Pas-de-Calais.", False),
    ("es", "No vino nadie.", True), ("es", "Nora nota la noche.", False), ("de", "Ich habe keinen Hund.", True),
    ("de", "Die Niederlage war klein.", False), ("xx", "not never no", None),
])  # fmt: skip
def test_negations(lang: str, text: str, negated: bool | None) -> None:
    assert has_negation(text, lang) is negated
    assert has_negation(text.upper(), lang) is negated


@pytest.mark.parametrize(("lang", "text", "expected"), [
    ("en", "It costs $3.50, not 1,000.", ["1000", "3.5"]), ("en", "The one who often waits", []),
    ("en", "dozens", None), ("en", "On the 3rd day, 5 men", ["5"]), ("en", "1.5 million dogs", ["1500000"]),
    ("en", "at 2:30 thousand men", ["1000", "2:30"]), ("fr", "Dix-sept ans, quatre-vingt-dix euros.", ["17", "90"]),
    ("fr-CA", "Trois millions, ou 3 millions", ["3000000", "3000000"]),
    ("fr", "1\u00a0000\u202f000 de 999", ["1000000", "999"]), ("de", "Zwei Hunde in zwölf Häusern", ["12", "2"]),
    ("en", "10,000 people in nineteen forty-five", ["10000", "1945"]),
    ("fr", "Quatre-vingts femmes et vingt et un enfants", ["21", "80"]),
    ("es", "Veintiuna casas y doscientos árboles", ["200", "21"]),
    ("de", "Einundzwanzig Hunde und zwei Millionen Katzen", ["2000000", "21"]),
    ("de", "1.234,5 Euro", ["1234.5"]), ("es", "Veintiún perros", ["21"]), ("ja", "３人", None), ("xx", "two 2", None),
])  # fmt: skip
def test_numbers(lang: str, text: str, expected: list[str] | None) -> None:
    assert numbers(text, lang) == (expected and sorted(expected))


@pytest.mark.parametrize(("lang", "text", "expected"), [
    ("en", "Yesterday Tom's dog met Mr. Smith and I.", ["Smith", "Tom"]), ("tr", "Dün Ankara'ya gittik.", ["Ankara"]),
    ("fr", "« Viens ! » Demain, l'Italie jouera. Anne aussi.", ["Italie"]), ("de", "Der Hund von Anna", None),
])  # fmt: skip
def test_names_have_a_capital_within_a_sentence(lang: str, text: str, expected: list[str] | None) -> None:
    assert names(text, lang) == expected


def test_digits_are_numbers_that_are_written_in_digits() -> None:
    assert digits("In two days, at 2:30, 5 men paid 1.50.") == ["1.50", "2:30", "5"]
    assert digits("３人 و ٢٥") == ["25", "3"]


def test_length_counts_words_or_characters() -> None:
    assert (length("It is late.", "en"), length("遅い です", "ja"), length("很晚了", "zh-Hant")) == (3, 4, 3)


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Tom saw Mary.", "en", "other other name punctuation"),  # every first word is capitalised, so "Tom" is no name
        ("I don't know.", "en", "function function punctuation function other punctuation"),
        ("So I go", "en", "function function other"),
        ("At 2:30, 1,000 men!", "en", "function number punctuation number other punctuation"),
        ("Il vit à Paris. Léa rit.", "fr", "function other function name punctuation other other punctuation"),
        ("L'ami de Tom", "fr", "function punctuation other function name"),
        ("Der Hund bellt", "de", "function other other"),  # all German nouns are capitalised, so no name is recognised
        ("Koira näkee Pekan", "fi", "other other other"),
        ("هَلْ أَنْتَ هُنَا؟", "ar", "other other other punctuation"),  # vowel signs belong to words
        ("मैं हिन्दी बोलता हूँ।", "hi", "other other other other punctuation"),
        ("שָׁלוֹם עֲלֵיכֶם", "he", "other other"),
        ("5\ufe0f\u20e3 x\u0303\u0323 👍🏽 🇫🇷 ❤️", "en", "number other punctuation punctuation punctuation"),
    ],
)  # fmt: skip
def test_words_have_the_class_that_a_reader_gives_them(text: str, lang: str, expected: str) -> None:
    assert " ".join(kind for *_, kind in classed_words(text, lang)) == expected


@pytest.mark.parametrize("row", Path(__file__).with_name("changes.tsv").read_text("utf-8").splitlines()[1:])
def test_changes_are_named_and_paraphrases_pass(row: str) -> None:
    lang, source, output, verdict = row.split("\t")
    assert differences(checks(source, lang, output, lang)) == verdict


def test_checks_that_passed_are_returned_except_those_of_word_order_and_length() -> None:
    checked = checks("Tom does not see 2 cats.", "en", "tom doesn't see two cats.", "en")
    assert checked == [(True, "negation kept"), (True, "numbers kept")]
    assert checks("I saw Tom.", "en", "i saw tom.", "en") == [(True, "names kept")]
    assert checks("No.", "en", "it is not late at all.", "en")[-1] == (False, "much longer")


def test_the_same_sentence_passes_all_checks() -> None:
    for lang in ("en", "fr", "de"):
        for (text,) in example_sentences([lang])[::5]:
            assert differences(checks(text, lang, text.lower(), lang)) == ""


def test_only_negations_and_numbers_are_compared_across_languages() -> None:
    verdicts = [check.verdict for check in checks("Tom does not have three cats.", "en", "il a trois chats", "fr")]
    assert verdicts == ["negation lost", "numbers kept"]
