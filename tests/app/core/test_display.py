"""Texts from users, files and URLs are shown character by character, and never interpreted as Markdown."""

import html
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.core import inventory
from app.core.display import JOINER, verbatim
from app.core.inventory import OwnTexts
from app.core.uploads import text_of
from tests.app.conftest import HOSTILE, STRANGER, hostile_in, markdown_of

MARKDOWN = MarkdownIt("commonmark")
Open = Callable[..., Any]


@given(
    st.text(st.characters(codec="ascii", exclude_characters="\0") | st.sampled_from("“é中"), max_size=60)
    | st.sampled_from([HOSTILE, "1. x"])
)
def test_markdown_shows_every_character_of_it(text: str) -> None:
    shown = MARKDOWN.render(verbatim(text)).strip().removeprefix("<p>").removesuffix("</p>")
    assert html.unescape(shown).replace(JOINER, "") == " ".join(text.split())


@pytest.mark.parametrize("text", [STRANGER, "HTTPS://stranger.test", "www.stranger.test", "me@stranger.test"])
def test_an_address_that_is_written_out_becomes_no_link(text: str) -> None:
    assert not re.search(r"https?://|www\.|\w@\w", verbatim(text), re.IGNORECASE)
    assert verbatim(text, addresses=True) == text


@pytest.mark.parametrize("page", ["pairs", "rewrite", "sentence"])
def test_every_other_field_of_text(opened: Open, page: str) -> None:
    fields = "sentence other meanings_en styles_en styles_fr ckpt"
    assert not hostile_in(opened(page, **dict.fromkeys(fields.split(), HOSTILE)))


def test_columns_and_cells_of_a_file(opened: Open) -> None:
    rows = {"en": ["One.", "Two.", "Three.", HOSTILE], "fr": ["Un.", "Deux.", "Trois.", HOSTILE]}
    table = pd.DataFrame({**rows, HOSTILE: ["a", HOSTILE, "a", "a"]})
    name, text, _ = text_of(f"{HOSTILE}.tsv", table, ["en", "fr", "own"], False)
    assert isinstance(text, inventory.ParallelText)
    for page in ("maps", "pairs"):
        app = opened(page)
        app.session_state["own"], app.session_state["own_key"] = OwnTexts(uploaded={name: text}), ""
        app.query_params["data"] = name
        app.run()
        assert not hostile_in(app)
    app = opened("maps").upload(f"{HOSTILE[:20]}.tsv".replace("/", ""), table.to_csv(sep="\t", index=False))
    assert any("stranger" in text for element in app._tree for text in markdown_of(element)) and not hostile_in(app)
