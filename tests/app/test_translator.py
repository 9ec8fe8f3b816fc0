"""A translator in the app: it says what it is, and no page promises what it can't do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.recipes.recipe import Recipe

Open = Callable[[str], AppTest]
PAGES = ("main", "sentence", "maps", "rewrite", "similarity", "probes", "languages", "card")


@pytest.fixture(autouse=True)
def french_to_english(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path, start: Callable[..., None]
) -> None:
    recipe = tiny("translator", columns=["fr", "en"])
    checkpoint.save(tmp_path / "fr-en", recipe, recipe.build(tokenizer), tokenizer, step=7)
    log = {"kind": "valid", "step": 7, "steps": 7, "translate/en": 17.1}
    (tmp_path / "fr-en" / "metrics.jsonl").write_text(json.dumps(log) + "\n", "utf-8")
    start("--model", tmp_path / "fr-en")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens(opened: Open, page: str) -> None:
    app = opened(page)
    assert app.title and not app.error


def test_it_says_that_it_translates_and_what_its_latent_is(opened: Open) -> None:
    app = opened("main")
    assert app.title[0].value == "A translator"
    assert "French into English" in app.sidebar.text[0].value
    (text,) = (text.value for text in app.markdown if "translates" in text.value)
    assert "French into English" in text and "`bgt translate`" in text and "not trained to be one" in text
    assert not any("paraphrases" in text.value for text in app.markdown)
    assert "On held-out pairs" not in [head.value for head in app.subheader]  # there is nothing below it


def test_pages_for_two_latents_say_why_they_are_empty(opened: Open) -> None:
    assert "translates French into English, and has no style" in opened("rewrite").info[0].value
    assert "one latent" in opened("languages").info[0].value
    assert "one latent" in opened("maps").caption[0].value


def test_no_english_sentences_stand_where_french_is_read(opened: Open) -> None:
    app = opened("similarity")
    assert [app.text_area(key=side).value for side in ("left", "right")] == ["", ""]
    assert app.warning[0].value == "Type two sentences."
