"""What the app writes from latents, without a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from app import state, writing
from bgt_core.data.examples import example_sentences
from bgt_core.generation.search import decode
from bgt_core.vectors.compare import cosines


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def test_a_sentence_is_rebuilt_from_its_own_latents(loaded: state.Loaded, saved: Path) -> None:
    text, cosine = writing.rebuilt(loaded, "The cat sleeps.", "en")
    bgt = bgt_core.load(saved)
    (expected,) = bgt_core.transfer(
        bgt, ["The cat sleeps."], ["The cat sleeps."], lang="en", search=writing.DEFAULT_SEARCH
    )
    assert text == expected
    assert cosine == pytest.approx(cosines(*bgt.embed(["The cat sleeps.", expected], lang="en")), abs=1e-5)


def test_another_language_takes_the_style_that_translations_of_like_sentences_have(
    loaded: state.Loaded, saved: Path
) -> None:
    """By a loop over the examples."""
    bgt = bgt_core.load(saved)
    (own,) = bgt.embed(["The cat sleeps."], lang="en", latent="language")
    pairs = example_sentences(("en", "fr"))
    near = sorted(pairs, key=lambda pair: -cosines(own, bgt.embed([pair[0]], lang="en", latent="language")[0]))[:20]
    second = np.mean([bgt.embed([pair[1]], lang="fr", latent="language")[0] for pair in near], axis=0)
    latents = {"semantic": bgt.embed(["The cat sleeps."], lang="en"), "language": second[None]}
    (expected,) = decode(bgt, latents, lang="fr", search=writing.DEFAULT_SEARCH)
    assert writing.in_language(loaded, "The cat sleeps.", "en", "fr") == expected
    assert (
        writing.in_language(loaded, "The cat sleeps.", "en", "en")
        == writing.rebuilt(loaded, "The cat sleeps.", "en")[0]
    )
