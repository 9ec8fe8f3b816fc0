"""An average that starts from another encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bgt_core import checkpoint, training
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.nets.encoders import SIFPooling
from tests.close import assert_close

SIZES = {
    "average_dim": 12,
    "bound_dim": 8,
    "roles_dim": 16,
    "composed_layers": 1,
    "d_model": 16,
    "ffn_dim": 16,
    "heads": 2,
}
SETTINGS: dict[str, Any] = {f"model.{name}": value for name, value in SIZES.items()} | {
    "model.language_dim": 6,
    "model.decoder_layers": 1,
    "data.vocab_size": 400,
    "data.valid_pairs": 20,
    "train.learning_rate": 1e-2,
    "train.warmup_steps": 0,
}


def average(folder: Path) -> torch.Tensor:
    """The token vectors of a checkpoint's average."""
    parts = checkpoint.load(folder).model.modules()
    return next(part for part in parts if isinstance(part, SIFPooling)).table.weight.detach()


@pytest.fixture
def encoder(tokenizer: Tokenizer, tmp_path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """An encoder that knows the tokens' texts alone, and its vectors."""
    texts = sorted({text.strip() for text in tokenizer.texts()} - {""})
    vectors = np.random.default_rng(0).normal(size=(len(texts), 12)).astype(np.float32)
    np.save(tmp_path / "texts.npy", vectors)
    (tmp_path / "texts.txt").write_text("\n".join(texts), "utf-8")
    return f"vectors:{tmp_path / 'texts.npy'}", dict(zip(texts, vectors, strict=True))


def test_an_average_starts_with_an_encoder_s_vectors_and_a_checkpoint_s_goes_on(
    encoder: tuple[str, dict[str, np.ndarray]], tokenizer: Tokenizer, tsv: Path, tmp_path: Path
) -> None:
    spec, vectors = encoder
    tokenizer.save(tmp_path / "tokenizer.model")
    settings = {**SETTINGS, "model.average_from": spec}
    options: dict[str, Any] = {"tokenizer": tmp_path / "tokenizer.model", "device": "cpu"}
    training.train("bgt-bound", [tsv], tmp_path / "start", overrides=settings | {"train.epochs": 0.0}, **options)
    rows = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    given = np.stack([vectors[text] for text in rows.values()])
    given -= given.mean(0)
    expected = given / np.linalg.norm(given, axis=1).mean()
    assert_close(average(tmp_path / "start")[list(rows)], expected)

    training.train("bgt-bound", [tsv], tmp_path / "learned", overrides=settings | {"train.epochs": 0.2}, **options)
    assert not torch.equal(average(tmp_path / "learned"), average(tmp_path / "start"))
    again = {"train.epochs": 0.0, "data.valid_pairs": 20}
    training.train(
        "bgt-bound", [tsv], tmp_path / "again", init_from=tmp_path / "learned", overrides=again, device="cpu"
    )
    assert torch.equal(average(tmp_path / "again"), average(tmp_path / "learned"))


def test_an_average_of_another_width_is_refused(
    encoder: tuple[str, dict[str, np.ndarray]], tokenizer: Tokenizer, tsv: Path, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path / "tokenizer.model")
    settings = {**SETTINGS, "model.average_from": encoder[0], "model.average_dim": 10}
    with pytest.raises(UsageError, match="its vectors have 12 units, the average has 10; set average_dim=12"):
        training.train(
            "bgt-bound",
            [tsv],
            tmp_path / "run",
            tokenizer=tmp_path / "tokenizer.model",
            overrides=settings,
            device="cpu",
        )
