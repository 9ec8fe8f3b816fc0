"""The effect of each word on the similarity of two sentences, in each latent of a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bgt_core
from app.core.pairs import LEAST
from bgt_core.vectors.compare import cosines
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
LEFT, RIGHT = "The cat sleeps.", "Is the cat asleep?"
EN = {"one_left_lang": "English", "one_right_lang": "English"}


def of_words(app: Any) -> list[Any]:
    return [table.value for table in app.dataframe if "Word" in table.value]


def shown(effect: float) -> float:
    """Return the effect as it is shown: 0 if it is 0 in two decimals."""
    return effect if abs(effect) >= LEAST else 0.0


def test_each_latent_has_what_the_pair_loses_without_a_word(opened: Open, saved: Path) -> None:
    left, right = of_words(opened("pairs", left=LEFT, right=RIGHT, **EN))
    assert left["Word"].tolist() == ["The", "cat", "sleeps", "."]
    assert right["Word"].tolist() == ["Is", "the", "cat", "asleep", "?"]
    bgt = bgt_core.load(saved)
    for latent, title in (("semantic", "Semantic latent"), ("language", "Language latent")):
        whole, no_cat = (cosines(*bgt.embed([text, RIGHT], lang="en", latent=latent)) for text in (LEFT, "The sleeps."))
        assert_close(left.set_index("Word")[title]["cat"], shown(whole - no_cat), FLOAT32, scale=1)
        no_mark = cosines(*bgt.embed([LEFT, RIGHT[:-1]], lang="en", latent=latent))
        assert_close(right.set_index("Word")[title]["?"], shown(whole - no_mark), FLOAT32, scale=1)


def test_two_languages_are_compared_in_meaning_only(opened: Open) -> None:
    left, _ = of_words(
        opened("pairs", left=LEFT, right="Le chat dort.", one_left_lang="English", one_right_lang="French")
    )
    assert list(left) == ["Word", "Semantic latent"]


def test_a_text_of_too_many_words_is_named(opened: Open) -> None:
    app = opened("pairs", left="a " * 301, right="Stop", **EN)
    assert not of_words(app)
    assert any("this one has 301" in caption.value for caption in app.caption)
