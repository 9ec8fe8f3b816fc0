"""What the app writes from latents, without a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from app import state, writing
from bgt_core.data.examples import example_sentences
from bgt_core.generation.rerank import candidates
from bgt_core.generation.search import exchanged
from bgt_core.vectors.compare import cosines


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def test_a_sentence_is_rebuilt_from_its_own_latents(loaded: state.Loaded, saved: Path) -> None:
    text, cosine = writing.rebuilt(loaded, "The cat sleeps.", "en")
    bgt = bgt_core.load(saved)
    latents = exchanged(bgt, ["The cat sleeps."], ["The cat sleeps."], "en", "en")
    expected = candidates(bgt, latents, lang="en", search=writing.DEFAULT_SEARCH)[0][0].text
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
    expected = candidates(bgt, latents, lang="fr", search=writing.DEFAULT_SEARCH)[0][0].text
    assert writing.in_language(loaded, "The cat sleeps.", "en", "fr") == expected
    assert (
        writing.in_language(loaded, "The cat sleeps.", "en", "en")
        == writing.rebuilt(loaded, "The cat sleeps.", "en")[0]
    )


def test_a_grid_is_written_cell_by_cell_as_one_sentence_is(loaded: state.Loaded, saved: Path) -> None:
    bgt = bgt_core.load(saved)
    meanings, styles = ["The cat sleeps.", "Il est tard."], ["Is it late?", "No!", "Well, I do not know."]
    for meaning_lang, lang in (("en", "en"), ("fr", "en")):
        table, rebuilt = writing.grid(loaded, meanings, meaning_lang, styles, lang)
        assert list(zip(table["meaning"], table["style"], strict=True)) == [(m, s) for m in meanings for s in styles]
        for row in table.itertuples():
            latents = exchanged(bgt, [row.meaning], [row.style], lang, meaning_lang)
            best = candidates(bgt, latents, lang=lang, search=writing.DEFAULT_SEARCH)[0][0]
            assert row.text == best.text
            assert (row.semantic, row.second) == pytest.approx((best.kept["semantic"], best.kept["language"]), abs=1e-5)
            own = bgt.embed([row.meaning], lang="en", latent="language")
            style = bgt.embed([row.style], lang="en", latent="language")
            unchanged = cosines(own[0], style[0]) if meaning_lang == lang else np.nan
            assert row.unchanged == pytest.approx(unchanged, abs=1e-5, nan_ok=True)
        for text, pair in zip(meanings, rebuilt, strict=True):
            again, cosine = writing.rebuilt(loaded, text, meaning_lang)
            assert pair == (again, pytest.approx(cosine, abs=1e-5))
            assert bool(writing.beyond(pair)) == (cosine < writing.POOR)
