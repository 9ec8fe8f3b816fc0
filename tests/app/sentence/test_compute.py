"""A sentence: its length, and the style that it is given in another language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from app.core import state, writing
from app.sentence import compute
from bgt_core.data.examples import example_sentences
from bgt_core.generation.generate import candidates
from bgt_core.vectors.compare import cosines


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


@pytest.mark.slow
def test_another_language_takes_the_style_that_translations_of_like_sentences_have(
    loaded: state.Loaded, saved: Path, library: Callable
) -> None:
    """By a loop over the examples."""
    bgt = bgt_core.load(saved)
    (own,) = bgt.embed(["The cat sleeps."], lang="en", latent="language")
    pairs = example_sentences(("en", "fr"))
    near = sorted(pairs, key=lambda pair: -cosines(own, bgt.embed([pair[0]], lang="en", latent="language")[0]))[:20]
    second = np.mean([bgt.embed([pair[1]], lang="fr", latent="language")[0] for pair in near], axis=0)
    latents = {"semantic": bgt.embed(["The cat sleeps."], lang="en"), "language": second[None]}
    expected = candidates(bgt, latents, lang="fr", search=writing.DEFAULT_SEARCH)[0][0].text
    assert compute.in_language(loaded, "The cat sleeps.", "en", "fr") == expected
    expected = library(["The cat sleeps."], ["The cat sleeps."])[0].text
    assert compute.in_language(loaded, "The cat sleeps.", "en", "en") == expected


@pytest.mark.parametrize(
    ("text", "lang", "length"),
    [("It is late.", "en", 3), ("もう遅い。", "ja", 4), ("已经很晚了。", "zh-Hans", 5), ("ดึกแล้ว", "th", 5)],
)
def test_languages_without_spaces_are_measured_in_letters(text: str, lang: str, length: int) -> None:
    assert compute.length(text, lang) == length
