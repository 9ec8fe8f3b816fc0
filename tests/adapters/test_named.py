"""Encoders that a split or a writer names: which ones count as the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from bgt_core.adapters import open_encoder
from bgt_core.adapters.named import identity, named_encoder
from bgt_core.errors import DataError


def test_our_model_is_the_same_in_another_precision(saved: Path) -> None:
    single, half = (open_encoder(str(saved), device="cpu", precision=precision) for precision in ("fp32", "bf16"))
    assert single.fingerprint != half.fingerprint and identity(single) == identity(half)
    assert named_encoder(str(saved), identity(half), lambda _: single, "the split") is single


def test_a_changed_encoder_is_refused_and_an_unknown_one_is_not() -> None:
    words = open_encoder("baseline:words")
    assert named_encoder("baseline:words", "", lambda _: words, "the split") is words
    with pytest.raises(
        DataError, match=r"^baseline:words: has changed since the split was made .*it was other, now it is"
    ):
        named_encoder("baseline:words", "other", lambda _: words, "the split")
