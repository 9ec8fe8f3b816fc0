"""A sentence: the words that show a property, and the properties that come from the style sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.core import state
from app.sentence.compute import showing, taken_over, title, wording


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


@pytest.mark.parametrize(
    ("text", "lang", "values", "words"),
    [
        ("Vous êtes en retard.", "fr", {"address": "vous"}, {"vous"}),
        ("Asseyez-vous.", "fr", {"address": "vous"}, {"asseyez-vous"}),
        ("Est-ce que tu viens ?", "fr", {"address": "tu", "question-form": "est-ce que"}, {"est-ce", "que", "tu"}),
        ("Il dort ?", "fr", {"question-form": "intonation"}, set()),
        ("I haven't seen you.", "en", {"contraction": "short"}, {"haven't"}),
        ("I have not seen him.", "en", {"contraction": "full"}, {"have", "not"}),
        ("Wann kommen Sie?", "de", {"address": "Sie"}, {"kommen", "sie"}),
        ("私は学生です。", "ja", {"politeness": "polite"}, set()),  # without spaces between words
        ("Il pleut.", "fr", {}, set()),
    ],
)
def test_the_words_that_show_a_property(text: str, lang: str, values: dict, words: set) -> None:
    assert wording(text, lang) == values and showing(text, lang, values) == words


def test_what_a_generated_text_has_from_the_style_alone() -> None:
    style = "Comment allez-vous ?"
    assert taken_over("vous êtes en retard.", "fr", style, "You are late.", "en") == {"address": "vous"}
    assert taken_over("vous êtes en retard.", "fr", style, "Vous êtes fatigué.", "fr") == {}
    assert taken_over("tu es en retard.", "fr", style, "You are late.", "en") == {}
    asked = taken_over("veux-tu venir ?", "fr", "Viens-tu ?", "Do you want to come?", "en")
    assert asked == {"address": "tu"}  # questions are inverted in any style, so inversion does not count
    assert [title("address", "vous"), title("contraction", "short")] == ["vous", "short form"]
