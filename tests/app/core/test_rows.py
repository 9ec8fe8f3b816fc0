"""Counts of a sentence's words and marks, and a user's typed lines."""

from __future__ import annotations

import pytest

from app.core import rows


@pytest.mark.parametrize(
    ("text", "words", "punctuation", "mark"),
    [
        ("Where is it?", 3, 1, "question"),
        ("Où est-ce ?", 2, 2, "question"),  # the French mark is separated by a space, but is not a word
        ("Well, it rains...", 3, 2, "ellipsis"),
        ("Well, it rains…", 3, 2, "ellipsis"),
        ("So what!", 2, 1, "exclamation"),
        ("It is.", 2, 1, "full stop"),
        ("It is", 2, 0, "none"),
        ("駅はどこですか？", 1, 1, "question"),
        ("أين المحطة؟", 2, 1, "question"),
        ("« Où est-ce ? »", 2, 4, "question"),  # quotes are not closing marks
        ("As follows:", 2, 1, "other"),
        ("شكرًا", 1, 0, "none"),  # the diacritic above its last letter but one is not a mark
        ("", 0, 0, "none"),
    ],
)
def test_counts(text: str, words: int, punctuation: int, mark: str) -> None:
    assert (rows.words(text), rows.punctuation(text), rows.mark(text)) == (words, punctuation, mark)


def test_typed_lines_are_cleaned_bounded_and_numbered_on() -> None:
    kept, over = rows.typed("  One  line.\n\nOne line.\nAnother\u200b.\n", "fr", 5)
    assert kept["text"].tolist() == ["One line.", "Another."]
    assert kept["id"].tolist() == ["own5", "own6"] and kept["own"].all() and set(kept["lang"]) == {"fr"}
    assert over == 0
    kept, over = rows.typed("\n".join(map(str, range(300))), "en", 10)
    assert (len(kept), over) == (rows.MAX_OWN - 10, 300 - (rows.MAX_OWN - 10))
    assert len(rows.typed(" \n", "en", 0)[0]) == 0


def test_sentences_are_coloured_by_the_properties_of_their_language() -> None:
    table = rows.translations([("You're late.", "Vous êtes en retard."), ("Yes.", "Tu dors ?")], ("en", "fr"))
    assert list(rows.styled(table, "address")) == [rows.NONE, rows.NONE, "vous", "tu"]
    assert list(rows.styled(table, "contraction")) == ["short", rows.NONE, rows.NONE, rows.NONE]
    assert list(rows.styled(table, "question-form")) == [rows.NONE, rows.NONE, rows.NONE, "intonation"]
    assert {"address", "contraction", "question-form", "lang"} <= set(rows.colours(("en", "fr")))
    assert set(rows.colours(("ja",))) & {*rows.STYLES, "lang"} == {"politeness"}
    assert {rows.colours(langs)[0] for langs in (("en",), ("en", "fr"), ("xx",))} == {"mark"}
