"""The rules for properties of style agree with a reader's labels; README.md in this folder names the source."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bgt_core.data.properties import PROPERTIES, final_mark, signature

LABELLED = Path(__file__).with_name("labelled_properties.tsv")  # property, language, label ("": none, or several), text


def labelled() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in LABELLED.read_text("utf-8").splitlines():
        name, lang, label, text = line.split("\t")
        groups.setdefault((name, lang), []).append((label, text))
    for (name, lang), rows in groups.items():
        yield name, lang, rows


@pytest.mark.parametrize(("name", "lang", "rows"), [pytest.param(*each, id="-".join(each[:2])) for each in labelled()])
def test_a_rule_is_right_where_it_speaks_and_speaks_often(name: str, lang: str, rows: list[tuple[str, str]]) -> None:
    assert len(rows) == 100
    told = [(PROPERTIES[name].value(text, lang), label) for label, text in rows]
    spoken = [(value, label) for value, label in told if value]
    assert sum(value == label for value, label in spoken) >= 0.98 * len(spoken)
    assert sum(value == label for value, label in spoken) >= 0.8 * sum(label != "" for _, label in told)


@pytest.mark.parametrize(
    ("lang", "text", "value"),
    [
        ("de", "Haben Sie Zeit?", "Sie"),
        ("de", "Sie haben Zeit.", ""),  # she, they, or formal
        ("de", "haben sie zeit?", "Sie"),  # text of a model without capitals
        ("de", "sie hat zeit.", ""),
        ("fr", "C'est le rendez-vous de Tom.", ""),
        ("fr", "Allez chez lui.", "vous"),
        ("fr", "Tu les as vus, vous deux ?", ""),
        ("tr", "Henüz gelmedi.", ""),
        ("es", "La suerte de Tom.", ""),
        ("xx", "Tu viens ?", ""),
    ],
)
def test_address_is_told_by_pronouns_and_plain_endings(lang: str, text: str, value: str) -> None:
    assert PROPERTIES["address"].value(text, lang) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It’s late.", "short"),
        ("Tom's house is big.", ""),
        ("He is late.", "full"),
        ("Yes, he is.", ""),
        ("I have a dog.", ""),
        ("I have seen it.", "full"),
        ("I cannot come.", "full"),
        ("I don't know who he is talking to.", ""),
    ],
)
def test_a_full_form_is_one_that_could_be_contracted(text: str, value: str) -> None:
    assert PROPERTIES["contraction"].value(text, "en") == value


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is late.", "."),
        ("Où est-il ?", "?"),
        ("« Viens ! »", "!"),
        ('He said "no".', "."),
        ("Well...", "..."),
        ("Well (perhaps…)", "..."),
        ('She said "it is late!"', "!"),
        ("It is plan .X", ""),
        ("どこですか？", "?"),
        ("「行く。」", "."),
        ("أين هو؟", "?"),
        ("وہ آیا۔", "."),
        ("वह आया।", "."),
        ("no mark", ""),
        ("colon:", ""),
        ("the letter X", ""),
        ("Room 5. X", ""),
        ("", ""),
    ],
)
def test_the_closing_mark_is_read_past_quotes_and_scripts(text: str, mark: str) -> None:
    assert final_mark(text) == mark


def test_sentences_of_one_signature_differ_in_content_alone() -> None:
    late, tired = signature("Vous êtes en retard.", "fr"), signature("Votre frère arrive.", "fr")
    assert late == tired != signature("Tu es en retard.", "fr")
    assert late != signature("Vous n'êtes pas en retard.", "fr")
    assert signature("متى؟", "ar") != signature("نعم.", "ar")
