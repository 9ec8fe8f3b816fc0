"""Kept similarities as an encoder of pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bgt_core import open_encoder
from bgt_core.adapters.scores import KeptSimilarities
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.evaluation.sts.parquet import write_scores
from bgt_core.evaluation.sts.score import StsScores, StsSet


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two systems on three pairs, the last across languages."""
    gold = np.array([0.0, 1, 2])
    sets = [StsSet("2012", "A", gold, ["a", "b", "a"], ["b", "a", "c"])]
    sets.append(StsSet("sts17", "en-fr", gold, ["a", "b", "c"], ["a", "b", "c"], "en", "fr"))
    cosines = [np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])]
    scores = {"m semantic": StsScores(sets, cosines), "m language": StsScores(sets, [-each for each in cosines])}
    write_scores(tmp_path / "items.parquet", scores)
    return tmp_path / "items.parquet"


def compared(encoder: KeptSimilarities, left: list[str], right: list[str], right_lang: str, latent: str) -> list[float]:
    sides = encoder.embed(left, lang="en", latent=latent), encoder.embed(right, lang=right_lang, latent=latent)
    return encoder.similarity_pairwise(*sides).tolist()


def test_pairs_have_the_similarity_that_was_kept_of_each_system(file: Path) -> None:
    encoder = open_encoder(f"scores:{file}")
    assert isinstance(encoder, KeptSimilarities)
    assert encoder.latents == ("m semantic", "m language") and not encoder.langs
    assert compared(encoder, ["a", "a", "b"], ["c", "b", "a"], "en", "m semantic") == [0.3, 0.1, 0.2]
    assert compared(encoder, ["a", "c"], ["a", "c"], "fr", "m language") == [-0.4, -0.6]
    assert encoder.fingerprint == KeptSimilarities(file).fingerprint


def test_what_was_not_kept_is_named(file: Path, tmp_path: Path) -> None:
    encoder = KeptSimilarities(file)
    with pytest.raises(DataError, match=r"items\.parquet: it has no similarity for 'x'"):
        encoder.embed(["a", "x"], lang="en", latent="m semantic")
    with pytest.raises(UsageError, match=r"semantic: .*items\.parquet has m semantic, m language"):
        encoder.embed(["a"], lang="en")
    assert encoder.embed([], lang="en", latent="m semantic").shape == (0, 2)
    with pytest.raises(DataError, match="it has no similarity for pair 2"):
        compared(encoder, ["a", "b"], ["b", "c"], "en", "m semantic")
    with pytest.raises(BgtError, match="can't be searched"):
        encoder.similarity(np.ones((1, 2)), np.ones((1, 2)))
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(DataError, match="not a file that bgt evaluate sts --out writes"):
        KeptSimilarities(tmp_path / "text.parquet")
    write_scores(tmp_path / "empty.parquet", {})
    with pytest.raises(DataError, match="it holds no similarities"):
        KeptSimilarities(tmp_path / "empty.parquet")
