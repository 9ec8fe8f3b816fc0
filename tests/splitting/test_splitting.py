"""From an encoder and pairs to a split: what is fitted, what is held out, and what can't be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core.adapters.external import ExternalEncoder
from bgt_core.errors import BgtError

ROWS, WIDTH = 400, 6
MEANING = np.random.default_rng(0).standard_normal((ROWS, 3))
COLUMNS = [[f"{lang} {row}" for row in range(ROWS)] for lang in ("en", "fr")]


def encode(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Three units of meaning, three of noise of its own, and a mean of the language."""
    rows = [int(sentence.split()[1]) for sentence in sentences]
    own = np.stack([np.random.default_rng([row, len(sentences[0]), lang == "fr"]).standard_normal(3) for row in rows])
    return np.hstack([MEANING[rows], 3 * own]) + (5 if lang == "fr" else 0)


ENCODER = ExternalEncoder("ours", encode)


def test_translations_are_found_by_what_they_share_alone() -> None:
    seen: list[tuple[int, int]] = []
    split = bgt_core.split(ENCODER, COLUMNS, ["en", "fr"], report=lambda *counts: seen.append(counts))
    assert split.method == "bgt" and split.about["rows"] == 360 and split.about["held_out_rows"] == 40
    assert seen == [(400, 400)]
    scores = split.about["scores"]
    assert scores["shared"]["found"] > 0.9 > 0.5 > scores["vectors"]["found"]
    assert scores["private"]["language_told"] == 1 > 0.7 > scores["shared"]["language_told"]


def test_the_same_seed_holds_the_same_rows_out() -> None:
    first, same, other = (bgt_core.split(ENCODER, COLUMNS, ["en", "fr"], seed=seed) for seed in (1, 1, 2))
    assert first.about == same.about != other.about


def test_paraphrases_of_one_language_are_split_too() -> None:
    split = bgt_core.split(ENCODER, [COLUMNS[0], [f"{text} again" for text in COLUMNS[0]]], ["en", "en"])
    assert split.langs == ("en",) and split.about["scores"]["shared"]["language_told"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "pca"}, "pca"),
        ({"langs": ["en"]}, "langs en: expected two or more"),
        ({"pairs": [COLUMNS[0], COLUMNS[1][:7]]}, "pairs have .7, 400. rows"),
        ({"pairs": [side[:20] for side in COLUMNS]}, "20 rows: at least 50"),
        ({"langs": ["en", "en"], "method": "leace"}, "leace tells languages apart"),
        ({"factors": 2, "method": "shift"}, "for bgt and neural alone"),
        ({"encoder": ExternalEncoder("wide", lambda texts, *_: np.eye(len(texts), 300))}, "bgt needs at least 667"),
        ({"encoder": ExternalEncoder("flat", lambda texts, *_: np.ones((len(texts), 3)))}, "are the same"),
        ({"encoder": ExternalEncoder("no", lambda texts, *_: np.full((len(texts), 3), np.nan))}, "contains NaN"),
    ],
)
def test_what_cannot_be_split_is_said(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        bgt_core.split(**({"encoder": ENCODER, "pairs": COLUMNS, "langs": ["en", "fr"]} | settings))
