"""Words and marks, in languages with and without spaces."""

from __future__ import annotations

import pytest

from bgt_core.data import words


@pytest.mark.parametrize(
    ("text", "lang", "parts"),
    [
        ("Don't you see it?", "en", ["Don't", "you", "see", "it", "?"]),
        ("Où est-ce qu'il va ?", "fr", ["Où", "est-ce", "qu'il", "va", "?"]),
        ("私はコーヒーが好きです。", "ja", ["私", "は", "コーヒー", "が", "好", "きです", "。"]),
        ("هل أنت هنا؟", "ar", ["هل", "أنت", "هنا", "؟"]),
    ],
)
def test_words_and_marks_are_left_out_one_at_a_time(text: str, lang: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in words.spans(text, lang)] == parts
    for part, rest in zip(parts, words.without(text, lang), strict=True):
        assert len(rest.replace(" ", "")) == len(text.replace(" ", "")) - len(part)
