"""Classes of words, and of the tokens that a tokenizer makes of them."""

from __future__ import annotations

import pytest

from bgt_core.data.text import Tokenizer
from bgt_core.evaluation.wordclass import (
    CLASSES,
    END,
    FUNCTION,
    NAME,
    NUMBER,
    OTHER,
    PUNCTUATION,
    count_classes,
    token_classes,
    words,
)


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Tom saw Mary.", "en", [OTHER, OTHER, NAME, PUNCTUATION]),  # the first word has a capital anyway
        ("I don't know.", "en", [FUNCTION, FUNCTION, PUNCTUATION, FUNCTION, OTHER, PUNCTUATION]),
        ("So I go", "en", [FUNCTION, FUNCTION, OTHER]),
        ("At 2:30, 1,000 men!", "en", [FUNCTION, NUMBER, PUNCTUATION, NUMBER, OTHER, PUNCTUATION]),
        ("Il vit à Paris. Léa rit.", "fr", [FUNCTION, OTHER, FUNCTION, NAME, PUNCTUATION, OTHER, OTHER, PUNCTUATION]),
        ("L'ami de Tom", "fr", [FUNCTION, PUNCTUATION, OTHER, FUNCTION, NAME]),
        ("Der Hund bellt", "de", [FUNCTION, OTHER, OTHER]),  # German nouns have capitals
        ("Koira näkee Pekan", "fi", [OTHER, OTHER, OTHER]),
        ("هَلْ أَنْتَ هُنَا؟", "ar", [OTHER, OTHER, OTHER, PUNCTUATION]),  # with vowel signs
        ("मैं हिन्दी बोलता हूँ।", "hi", [OTHER, OTHER, OTHER, OTHER, PUNCTUATION]),
        ("שָׁלוֹם עֲלֵיכֶם", "he", [OTHER, OTHER]),
        ("5\ufe0f\u20e3 x\u0303\u0323 👍🏽 🇫🇷 ❤️", "en", [NUMBER, OTHER, PUNCTUATION, PUNCTUATION, PUNCTUATION]),
    ],
)  # fmt: skip
def test_words_have_the_class_that_a_reader_gives_them(text: str, lang: str, expected: list[str]) -> None:
    assert [kind for *_, kind in words(text, lang)] == expected
    counts = dict(zip(CLASSES, count_classes(text, lang), strict=True))
    assert counts == {kind: expected.count(kind) for kind in CLASSES} | {END: 1}


def test_tokens_have_the_class_of_their_first_character() -> None:
    tokens = [" i", " saw", " ma", "ry", "'", "s", " 1", "2", "0", " c", "ats", "."]
    kinds = token_classes("I  saw Mary's 120 cats.", tokens, "en")
    assert kinds == [
        FUNCTION, OTHER, NAME, NAME, PUNCTUATION, FUNCTION, NUMBER, NUMBER, NUMBER, OTHER, OTHER, PUNCTUATION, END,
    ]  # fmt: skip


def test_a_character_that_becomes_several_moves_tokens_no_further_than_its_word() -> None:
    tokens = [" wait", ".", ".", ".", " tom", "?"]
    assert token_classes("Wait… Tom?", tokens, "en")[3:] == [PUNCTUATION, OTHER, PUNCTUATION, END]
    assert token_classes("", [], "en") == [END]
    more = [" it", " is", " 5", " ."]  # tokens than words
    assert token_classes("It is 5", more, "en") == [FUNCTION, FUNCTION, NUMBER, NUMBER, END]


@pytest.mark.parametrize("text", ["²", "e\u0301", "a_b", "½ km", "𝟙", "ª", "①", "\u200d", "٣", "x\u0000y"])
def test_every_character_but_spaces_has_a_class(text: str) -> None:
    assert None not in token_classes(text, [f" {text}", *text], "en")


def test_every_token_of_a_real_tokenizer_has_a_class(tokenizer: Tokenizer) -> None:
    text = "The Dog sees 12 cats, ﬁnally…  doesn't 它?"
    texts = tokenizer.texts()
    tokens = [texts[token] for token in tokenizer.encode([text])[0][:-1]]
    kinds = token_classes(text, tokens, "en")
    assert len(kinds) == len(tokens) + 1 and set(kinds) <= set(CLASSES)
