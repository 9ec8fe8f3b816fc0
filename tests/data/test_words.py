"""Words and marks are found in languages with and without spaces; letter frequencies of languages are compared."""

import pytest

from bgt_core.data import words
from bgt_core.data.text import normalise
from bgt_core.data.words import letter_overlap
from bgt_core.errors import DataError


@pytest.mark.parametrize(
    ("text", "lang", "parts"),
    [
        ("Don't you see it?", "en", ["Don't", "you", "see", "it", "?"]),
        ("Où est-ce qu'il va ?", "fr", ["Où", "est-ce", "qu'il", "va", "?"]),
        ("私はコーヒーが好きです。", "ja", ["私", "は", "コーヒー", "が", "好", "きです", "。"]),
        ("هل أنت هنا؟", "ar", ["هل", "أنت", "هنا", "؟"]),
        ("هَلْ أَنْتَ هُنَا؟", "ar", ["هَلْ", "أَنْتَ", "هُنَا", "؟"]),
        ("मैं हिन्दी बोलता हूँ।", "hi", ["मैं", "हिन्दी", "बोलता", "हूँ", "।"]),
        ("צה״ל שָׁלוֹם", "he", ["צה״ל", "שָׁלוֹם"]),
        ("สวัสดีครับ ผมชื่อ Tom", "th", ["สวัสดีครับ", "ผมชื่อ", "Tom"]),
        ("カ\u3099ムと犬", "ja", ["カ\u3099ム", "と", "犬"]),
        ("x\u0303y 5\ufe0f\u20e3!", "en", ["x\u0303y", "5\ufe0f\u20e3", "!"]),
    ],
)
def test_words_and_marks_are_left_out_one_at_a_time(text: str, lang: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in words.spans(text, lang)] == parts
    for part, rest in zip(parts, words.without(text, lang), strict=True):
        assert sorted(normalise(rest + part).replace(" ", "")) == sorted(normalise(text).replace(" ", ""))


@pytest.mark.parametrize("lang", ["en", "ja"])
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("👨\u200d👩\u200d👧 hi", ["👨\u200d👩\u200d👧", "hi"]),
        ("❤️\u200d🔥👍🏽", ["❤️\u200d🔥", "👍🏽"]),
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\u200d a \u200f\ufeff\u2060 \x00", ["a"]),
    ],
)
def test_an_emoji_is_one_mark_and_what_no_encoder_sees_is_no_word(text: str, parts: list[str], lang: str) -> None:
    assert [text[start:end] for start, end in words.spans(text, lang)] == parts


ENGLISH = ("dog", "cat", "boy", "teacher", "horse", "garden", "kettle", "window", "ladder", "morning")
FRENCH = ("chien", "chat", "garçon", "professeur", "cheval", "jardin", "lapin", "chemin", "bateau", "matin")


def test_by_hand() -> None:
    """a: min(1/2, 1/4), b: min(1/2, 3/4)."""
    assert letter_overlap(["ab"], ["abbb"]) == pytest.approx(0.75)


def test_letters_count_whatever_their_case_and_nothing_else_does() -> None:
    assert letter_overlap(["Aa 1!"], ["a, a?"]) == 1
    assert letter_overlap(["abc"], ["где"]) == 0


def test_a_language_overlaps_with_itself_wholly_and_with_another_either_way_alike() -> None:
    english = [f"the {one} sees the {other}" for one in ENGLISH for other in ENGLISH]
    french = [f"le {one} voit le {other}" for one in FRENCH for other in FRENCH]
    assert letter_overlap(english, english) == pytest.approx(1)
    assert 0 < letter_overlap(english, french) < 1
    assert letter_overlap(english, french) == pytest.approx(letter_overlap(french, english))


def test_nothing_to_count() -> None:
    with pytest.raises(DataError, match="has no letters"):
        letter_overlap(["12"], ["douze"])
