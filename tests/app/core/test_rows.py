"""The app warns about texts that a model can't read, and about texts that are not in the chosen language."""

from types import SimpleNamespace

import pytest

import bgt_core
from app.core import inventory, rows, state
from bgt_core.data.examples import LANGS, example_sentences

SENTENCES = {lang: [text for (text,) in example_sentences([lang])] for lang in LANGS}


@pytest.fixture(scope="module")
def small() -> SimpleNamespace:
    bgt = bgt_core.load()
    return SimpleNamespace(bgt=bgt, langs=bgt.langs)


def test_the_language_of_unseen_sentences_is_guessed_and_hardly_ever_wrongly_warned_of() -> None:
    right, false_alarms, caught, pairs = 0, 0, 0, 0
    for fold in range(2):  # two of the five folds are enough, and save time
        known = rows.profiles(
            {lang: [text for at, text in enumerate(texts) if at % 5 != fold] for lang, texts in SENTENCES.items()}
        )
        for lang, texts in SENTENCES.items():
            for text in texts[fold::5]:
                right += rows.likeliest(rows.ngrams(text), known)[0] == lang
                false_alarms += bool(rows.another_language(text, lang, known))
                caught += sum(rows.another_language(text, other, known) == lang for other in LANGS if other != lang)
                pairs += len(LANGS) - 1
    count = pairs // (len(LANGS) - 1)
    assert right > 0.99 * count  # a measurement found 99.3 %
    assert false_alarms <= 0.002 * count  # a measurement found 0.1 %
    assert caught > 0.95 * pairs  # a measurement found 95.7 %


def test_what_the_model_cannot_read_is_told(small: SimpleNamespace) -> None:
    french = state.warning(small, ["Où est la gare ? Je dois prendre le train de huit heures."], "en")
    assert french == "This looks like French, not English: choose its language."
    for lang in ("ja", "ar"):
        assert "which this model does not know" in state.warning(small, SENTENCES[lang][:20], "en")
    for text, of in (("Где он ?", "Cyrillic letters in English: 5 of 6"), ("Two ☃☃.", "☃ in English: 2 of 6")):
        assert f"did not learn to read {of} characters." in state.warning(small, [text], "en")


def test_no_example_sentence_of_a_models_languages_is_warned_of() -> None:
    for bgt in map(bgt_core.load, inventory.shipped().values()):
        model = SimpleNamespace(bgt=bgt, langs=bgt.langs)
        assert not any(state.warning(model, [text], lang) for lang in bgt.langs for text in SENTENCES[lang])


@pytest.mark.parametrize("text", ["", "   ", "42", "Taxi!", "OK", "Tom?"])
def test_nothing_is_said_of_what_tells_nothing(small: SimpleNamespace, text: str) -> None:
    assert state.warning(small, [text], "en") == state.warning(small, [text], "fr") == ""
    assert state.warning(small, [], "en") == ""


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300, "xx xxx xxxx " * 10, "asdfgh jkl qwertz", "zzzzzzzz zzzzz", "abcabc" * 30, "lol lol lol lol",
        "hahahahahaha", "de de de de", "123 456 7,89", "😀 😀😀", "https://www.lemonde.fr/politique/les-elections",
        "marie@mairie.fr, paul@ville.fr", "Jean-Pierre Dupont, Marie Curie", "Paris, Berlin, Tokyo", "Häagen-Dazs",
        "Bonjour", "Krankenversicherung", "Evet!", "Я не знаю, где мой брат.",
    ],
)  # fmt: skip
def test_text_of_no_certain_language_gets_none(text: str) -> None:
    assert [rows.another_language(text, lang) for lang in LANGS] == [""] * len(LANGS)
