"""The code that pages share is right: pairs of sentences, tables of sentences, cached vectors, colours and controls."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
import streamlit as st

import bgt_core
from app.core import display, rows, state
from app.core.pairs import LEAST
from app.core.state import filled
from bgt_core.contracts import SYNTACTIC
from bgt_core.vectors.arrays import cosines
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
LEFT, RIGHT = "The cat sleeps.", "Is the cat asleep?"
EN = {"language": "English", "other_language": "English"}


def of_words(app: Any) -> list[Any]:
    return [table.value for table in app.dataframe if "Word" in table.value]


def test_each_latent_has_what_the_pair_loses_without_a_word(opened: Open, saved: Path) -> None:
    left, right = of_words(opened("pairs", sentence=LEFT, other=RIGHT, **EN))
    assert left["Word"].tolist() == ["The", "cat", "sleeps", "."]
    assert right["Word"].tolist() == ["Is", "the", "cat", "asleep", "?"]
    bgt = bgt_core.load(saved)
    for latent, title in (("semantic", "Semantic latent"), ("language", "Language latent")):
        whole, no_cat = (cosines(*bgt.embed([text, RIGHT], lang="en", latent=latent)) for text in (LEFT, "The sleeps."))
        no_mark = cosines(*bgt.embed([LEFT, RIGHT[:-1]], lang="en", latent=latent))
        lost = np.array([whole - no_cat, whole - no_mark])
        shown = [left.set_index("Word")[title]["cat"], right.set_index("Word")[title]["?"]]
        assert_close(shown, np.where(abs(lost) < LEAST, 0, lost), FLOAT32, scale=1)


def test_two_languages_are_compared_in_meaning_only(opened: Open) -> None:
    left, _ = of_words(opened("pairs", sentence=LEFT, other="Le chat dort.", **EN | {"other_language": "French"}))
    assert list(left) == ["Word", "Semantic latent"]


def test_a_text_of_too_many_words_is_named(opened: Open) -> None:
    app = opened("pairs", sentence="a " * 301, other="Stop", **EN)
    assert not of_words(app)
    assert any("got 301" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("text", "words", "punctuation", "mark"),
    [
        ("Where is it?", 3, 1, "question"),
        ("Où est-ce ?", 2, 2, "question"),  # French puts a space before the question mark, which is not a word
        ("Well, it rains...", 3, 2, "ellipsis"),
        ("Well, it rains…", 3, 2, "ellipsis"),
        ("So what!", 2, 1, "exclamation"),
        ("It is.", 2, 1, "full stop"),
        ("It is", 2, 0, "none"),
        ("駅はどこですか？", 1, 1, "question"),
        ("أين المحطة؟", 2, 1, "question"),
        ("« Où est-ce ? »", 2, 4, "question"),  # quotes do not count as the final punctuation mark
        ("As follows:", 2, 1, "other"),
        ("شكرًا", 1, 0, "none"),  # the last character is a diacritic, not punctuation
        ("", 0, 0, "none"),
    ],
)
def test_counts(text: str, words: int, punctuation: int, mark: str) -> None:
    assert (rows.words(text), rows.punctuation(text), rows.mark(text)) == (words, punctuation, mark)


def test_typed_lines_are_cleaned_bounded_and_numbered_on() -> None:
    kept, over = rows.typed("  One  line.\n\nOne line.\nAnother\u200b.\n", "fr", 5)
    assert kept["text"].tolist() == ["One line.", "Another."] and over == 0
    assert kept["id"].tolist() == ["own5", "own6"] and kept["own"].all() and set(kept["lang"]) == {"fr"}
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


def sizes_of(texts: Sequence[str], lang: str) -> np.ndarray:
    """Embed a text as the lengths of the text and of the language code."""
    return np.array([[len(text), len(lang)] for text in texts], np.float32)


PARTS = [("en", ["a", "bb", "ccc"]), ("fra", ["dddd"])]


@pytest.mark.usefixtures("fresh")
def test_each_sentence_is_embedded_once_in_its_language_and_there_is_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "AT_ONCE", 2)
    embed = Mock(side_effect=sizes_of)
    vectors = filled("key", PARTS, embed)
    assert vectors.tolist() == [[1, 2], [2, 2], [3, 2], [4, 3]]
    assert filled("key", PARTS, embed) is vectors and not vectors.flags.writeable
    assert embed.call_args_list == [call(["a", "bb"], "en"), call(["ccc"], "en"), call(["dddd"], "fra")]


@pytest.mark.usefixtures("fresh")
def test_the_longest_unused_go_when_they_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "KEPT_BYTES", 2 * 4 * 2 * 4)  # memory for two float32 arrays of shape (4, 2)
    embed = Mock(side_effect=sizes_of)
    for key in ("first", "second", "first", "third", "first"):
        filled(key, PARTS, embed)
    assert embed.call_count == 3 * len(PARTS)
    filled("second", PARTS, embed)
    assert embed.call_count == 4 * len(PARTS)


@pytest.mark.usefixtures("fresh")
def test_vectors_of_examples_are_on_disk(saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state, "CACHE", tmp_path)
    monkeypatch.setattr(state, "FILES", 1)
    model, texts = state.checkpoint("tiny", str(saved), bgt_core.load), list(state.examples("en"))[: state.FEW + 1]
    state.embed(model, texts, "en", "language")
    vectors = state.embed(model, texts, "en", "semantic")  # this file replaces the first
    state.embed(model, [*texts, "It is mine."], "en", "semantic")  # a user's sentence is never written
    ((path, content),) = ((path, path.read_bytes()) for path in tmp_path.iterdir())
    for damaged in (content[:-1], b"", content[:-1] + bytes([content[-1] ^ 1])):
        path.write_bytes(damaged)
        st.cache_resource.clear()
        assert np.array_equal(state.embed(model, texts, "en", "semantic"), vectors) and path.read_bytes() == content
    monkeypatch.setattr(state, "computed", None)  # computing would fail, so vectors are read from the file
    st.cache_resource.clear()
    assert np.array_equal(state.embed(model, texts, "en", "semantic"), vectors)


GROUNDS = {"light": ("#ffffff", "#f7f7f6"), "dark": ("#171614", "#262730")}  # backgrounds of the page and of boxes
LUMINANCE = np.array([0.2126729, 0.7151522, 0.072175])  # of linear red, green and blue (sRGB)


def linear(colour: str) -> np.ndarray:
    """Convert an sRGB colour "#rrggbb" to linear RGB (3,)."""
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG defines it."""
    low, high = sorted(LUMINANCE @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def marks(name: str) -> dict[str, str]:
    latents = {latent: colour for latent, colour in display.LATENTS[name].items() if latent != SYNTACTIC}
    return {**latents, **display.LANGUAGES[name]}


@pytest.mark.parametrize("name", GROUNDS)
def test_marks_stand_out_from_their_ground_and_words_can_be_read(name: str) -> None:
    for ground in GROUNDS[name]:
        assert min(contrast(colour, ground) for colour in marks(name).values()) >= 3
        assert contrast(display.INK[name], ground) >= 4.5
    hover = display.hover_label(name)
    assert contrast(hover["font"]["color"], hover["bgcolor"]) >= 4.5


def test_every_language_has_a_colour_and_a_symbol_of_its_own() -> None:
    langs = list(display.LANGUAGES["light"])
    assert langs == list(display.LANGUAGES["dark"])
    assert len({display.cycled(display.SYMBOLS, display.lang_place(lang)) for lang in langs}) == len(langs)
    looks = {(display.cycled(display.PALETTE["light"], n), display.cycled(display.SYMBOLS, n)) for n in range(42)}
    assert len(looks) == 42  # colours and symbols repeat, but no combination does


FRENCH = "Il fait très froid ce matin dans notre maison."


@pytest.mark.parametrize(
    ("page", "link", "label", "control", "field"),
    [
        ("main", {"sentence": FRENCH}, "It is French", "language", "sentence"),
        ("pairs", {"other": FRENCH, **EN}, "The other sentence is French", "other_language", "other"),
        ("rewrite", {"sentence": FRENCH}, "Meaning is French", "language", "sentence"),
        ("rewrite", {"other": FRENCH, "other_language": "English"}, "Style is French", "other_language", "other"),
    ],
)
def test_a_button_makes_it_the_language_of_the_text(
    opened: Callable, page: str, link: dict[str, str], label: str, control: str, field: str
) -> None:
    app = opened(page, **link).press(label)
    assert app.session_state[control] == "fr" and app.session_state[field] == FRENCH
    assert not [box.value for box in app.warning if "This looks like French" in box.value]
    assert not [button.label for button in app.button if button.label.endswith("is French")]
