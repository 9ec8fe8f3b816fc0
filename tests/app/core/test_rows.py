"""What is counted on a sentence's surface, and a user's own lines."""

from __future__ import annotations

import pandas as pd
import pytest

from app.core import rows


@pytest.mark.parametrize(
    ("text", "words", "punctuation", "mark"),
    [
        ("Where is it?", 3, 1, "question"),
        ("Où est-ce ?", 2, 2, "question"),  # the French mark stands alone and is no word
        ("Well, it rains...", 3, 2, "ellipsis"),
        ("Well, it rains…", 3, 2, "ellipsis"),
        ("So what!", 2, 1, "exclamation"),
        ("It is.", 2, 1, "full stop"),
        ("It is", 2, 0, "none"),
        ("駅はどこですか？", 1, 1, "question"),
        ("أين المحطة؟", 2, 1, "question"),
        ("« Où est-ce ? »", 2, 4, "question"),  # quotes close no sentence
        ("As follows:", 2, 1, "other"),
        ("شكرًا", 1, 0, "none"),  # the sign above its last letter but one is no mark
        ("", 0, 0, "none"),
    ],
)
def test_counts(text: str, words: int, punctuation: int, mark: str) -> None:
    assert (rows.words(text), rows.punctuation(text), rows.mark(text)) == (words, punctuation, mark)


@pytest.mark.parametrize("table", [rows.examples(("en", "fr"), 20), rows.of_grammar(("en", "fr"), 20)])
def test_built_in_rows_are_pairs(table: pd.DataFrame) -> None:
    assert table["id"].is_unique and not table["own"].any()
    assert table["lang"].tolist() == ["en"] * 20 + ["fr"] * 20
    for _, pair in table.groupby("pair"):
        left, right = pair.itertuples()
        assert (left.text, left.translation) == (right.translation, right.text)


def test_translations_of_three_languages_know_both_others() -> None:
    table = rows.translations([("Yes.", "Oui.", "Ja."), ("No.", "Non.", "Nein.")], ("en", "fr", "de"))
    assert table["id"].tolist() == ["en0", "en1", "fr0", "fr1", "de0", "de1"]
    assert table["pair"].tolist() == [0, 1] * 3
    assert table.set_index("id").loc[["en0", "fr1", "de1"], "translation"].tolist() == [
        "Oui. / Ja.",
        "No. / Nein.",
        "No. / Non.",
    ]


def test_typed_lines_are_cleaned_bounded_and_numbered_on() -> None:
    kept, over = rows.typed("  One  line.\n\nOne line.\nAnother\u200b.\n", "fr", 5)
    assert kept["text"].tolist() == ["One line.", "Another."]
    assert kept["id"].tolist() == ["own5", "own6"] and kept["own"].all() and set(kept["lang"]) == {"fr"}
    assert over == 0
    kept, over = rows.typed("\n".join(map(str, range(300))), "en", 10)
    assert (len(kept), over) == (rows.MAX_OWN - 10, 300 - (rows.MAX_OWN - 10))
    assert len(rows.typed(" \n", "en", 0)[0]) == 0


def test_cells_may_be_called_as_what_is_shown_for_rare_and_empty_ones() -> None:
    few = rows.as_colour(pd.Series(["a", "none", "", "b"]))
    assert list(few) == ["a", "none", "none", "b"] and list(few.cat.categories) == ["a", "b", "none"]
    many = rows.as_colour(pd.Series(["other"] * 9 + list("abcdefgh")))
    assert list(many.cat.categories).count("other") == 1 and list(many[:9]) == ["other"] * 9


def test_sentences_are_coloured_by_the_properties_of_their_language() -> None:
    table = rows.translations([("You're late.", "Vous êtes en retard."), ("Yes.", "Tu dors ?")], ("en", "fr"))
    assert list(rows.styled(table, "address")) == [rows.NONE, rows.NONE, "vous", "tu"]
    assert list(rows.styled(table, "contraction")) == ["short", rows.NONE, rows.NONE, rows.NONE]
    assert list(rows.styled(table, "question-form")) == [rows.NONE, rows.NONE, rows.NONE, "intonation"]
    assert {"address", "contraction", "question-form", "lang"} <= set(rows.colours(("en", "fr")))
    assert set(rows.colours(("ja",))) & {*rows.STYLES, "lang"} == {"politeness"}
    assert {rows.colours(langs)[0] for langs in (("en",), ("en", "fr"), ("xx",))} == {"mark"}


@pytest.mark.parametrize(
    ("left", "right", "fraction"),
    [("A red car.", "a car?", 2 / 3), ("Oui", "oui !", 1.0), ("!", "?", 0.0)],
)
def test_words_shared(left: str, right: str, fraction: float) -> None:
    assert rows.overlap(left, right) == pytest.approx(fraction)
