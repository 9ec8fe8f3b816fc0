"""Two models are compared on the same pairs: the pairs on which they disagree most, and the translations they find."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from app.core import inventory, state
from app.core.display import verbatim
from app.core.pairs import LEAST
from app.pairs import models
from bgt_core.data.examples import example_sentences
from bgt_core.data.text import spans
from bgt_core.encoders import open_encoder
from bgt_core.evaluation.systems import disagreement, word_effects
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]
Start = Callable[..., None]


@pytest.fixture
def two_models(saved: Path, start: Start, function: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of two models in the app: an untrained one of this toolkit, and a user's function."""
    start("--model", saved, "--model", function)
    titles = state.titles()[:2]
    monkeypatch.setattr(state, "second", lambda: state.opened(titles[1]))
    return titles


def test_disagreements_are_of_the_vectors_and_the_first_pair_has_its_words(two_models: list[str], opened: Open) -> None:
    app = opened("pairs")
    named = [part.value for part in app.markdown if part.value.startswith("**")][:2]
    assert named == [f"**{verbatim(name)}**" for name in two_models]  # both models measure the user's pair
    assert [metric.label for metric in app.metric].count("Semantic latent") == 2
    *_, ranked, left_words, right_words = (table.value for table in app.dataframe)
    of_words = left_words, right_words
    columns = list(zip(*example_sentences(("en", "fr"))[: models.MAX_PAIRS], strict=True))
    encoders = {name: open_encoder(inventory.read().models[name]) for name in two_models}
    expected = disagreement(encoders, *columns, ("en", "fr"))
    assert len(ranked) == models.SHOWN
    assert ranked[models.GAP].tolist() == pytest.approx((100 * expected.gaps[expected.order])[: models.SHOWN].tolist())
    pair = [ranked[side].iloc[0] for side in ("Left", "Right")]
    assert pair == [column[expected.order[0]] for column in columns]
    sides = list(zip(pair, ("en", "fr"), strict=True))
    for table, (text, lang), (other, other_lang) in zip(of_words, sides, sides[::-1], strict=True):
        assert table["Word"].tolist() == [text[start:end] for start, end in spans(text, lang)]
        for name, encoder in encoders.items():
            gains = word_effects(encoder, text, lang, encoder.embed([other], lang=other_lang)[0])
            assert_close(table[name], np.where(np.abs(gains) < LEAST, 0, gains), FLOAT32, scale=1)


def test_translations_found_are_those_that_the_vectors_find(two_models: list[str], opened: Open) -> None:
    app = opened("pairs", by=models.RETRIEVAL)
    table = app.table[-2].value.set_index("Model")
    encoder = open_encoder(inventory.read().models[two_models[0]])
    left, right = zip(*example_sentences(("en", "fr"))[: models.MAX_PAIRS], strict=True)
    vectors = [encoder.embed(side, lang=lang) for side, lang in zip((left, right), ("en", "fr"), strict=True)]
    nearest = cosine_similarity(*vectors).argmax(1)
    share = 100 * np.mean([right[at] == right[row] for row, at in enumerate(nearest)])
    assert float(table.loc[two_models[0], "Score"].split()[0]) == pytest.approx(share, abs=1.0)
