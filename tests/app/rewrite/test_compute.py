"""What the app writes from latents, without a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from app.core import state
from app.rewrite import compute
from bgt_core.evaluation.facts import checks, differences
from bgt_core.vectors.compare import cosines
from tests.close import FLOAT32, assert_close


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def test_a_grid_is_written_cell_by_cell_as_one_sentence_is(
    loaded: state.Loaded, saved: Path, library: Callable
) -> None:
    bgt = bgt_core.load(saved)
    meanings, styles = ["The cat sleeps.", "Il est tard."], ["Is it late?", "No!", "Well, I do not know."]
    for meaning_lang, lang in (("en", "en"), ("fr", "en")):
        table, rebuilt = compute.grid(loaded, meanings, meaning_lang, styles, lang)
        assert list(zip(table["meaning"], table["style"], strict=True)) == [(m, s) for m in meanings for s in styles]
        for row in table.itertuples():
            (best,) = library([row.meaning], [row.style], lang, meaning_lang)
            assert row.text == best.text
            assert_close((row.semantic, row.second), (best.kept["semantic"], best.kept["language"]), FLOAT32, scale=1)
            own = bgt.embed([row.meaning], lang="en", latent="language")
            style = bgt.embed([row.style], lang="en", latent="language")
            unchanged = cosines(own[0], style[0]) if meaning_lang == lang else np.nan
            assert row.unchanged == pytest.approx(unchanged, rel=1e-4, nan_ok=True)
        for text, again in zip(meanings, rebuilt, strict=True):
            (best,) = library([text], [text], meaning_lang)
            assert again == best.text
            changed = differences(checks(text, meaning_lang, again, meaning_lang))
            warning = compute.beyond(text, again, meaning_lang)
            assert f"({changed})" in warning if changed else not warning
