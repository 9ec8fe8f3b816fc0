"""A writer of stored vectors: what its decoders get, and that ten sentences are learnt by heart from random vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.writer import LENGTH, StoredVector, VectorWriter
from bgt_core.recipes import Recipe
from tests.close import assert_close

UNITS = 12


@pytest.fixture
def model(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> VectorWriter:
    torch.manual_seed(0)
    made = tiny("writer", vector_dim=UNITS, dropout=0.0, d_model=32, hidden_share=0.5).build(tokenizer)
    assert isinstance(made, VectorWriter)
    return made


@pytest.fixture
def vectors() -> torch.Tensor:
    """Two columns of six rows, far from mean 0 and length 1."""
    return 3 + 5 * torch.randn(6, 2 * UNITS, generator=torch.Generator().manual_seed(1))


def test_vectors_are_standardised_and_the_mean_is_the_prior_s(model: VectorWriter, vectors: torch.Tensor) -> None:
    rows = vectors.view(-1, UNITS)
    model.stored.fit(rows)
    standard = model.stored.standardise(rows).numpy()
    assert np.abs(standard.mean(0)).max() < 1e-5 * LENGTH
    assert np.sqrt((standard**2).sum(1).mean()) == pytest.approx(LENGTH, rel=1e-5)
    style = torch.ones(12, 6)
    joined = model.join({"language": style, "semantic": model.prior_mean("semantic", rows)})
    assert torch.equal(joined, torch.cat([style, torch.zeros(12, UNITS)], 1))
    assert not model.prior_mean("language", style).any()


def test_each_column_is_written_from_its_own_vector(model: VectorWriter, vectors: torch.Tensor, batch: Batch) -> None:
    """Equal to the decoder's own prediction of the joined latents."""
    model.stored.fit(vectors.view(-1, UNITS))
    model.eval()
    out = model(replace(batch, targets=vectors), lambda posterior: posterior.mean)
    for number, (lang, prediction) in enumerate(zip(batch.sides, out.predictions, strict=True)):
        side = batch.sides[lang]
        own = vectors[:, number * UNITS : (number + 1) * UNITS]
        joined = model.join({"language": model.encoders[lang](side).mean, "semantic": own})
        expected = model.decoder(lang)("reconstruct", lang, joined, side)
        assert torch.equal(prediction.nll()[1], expected.nll()[1])
    without = model(batch, lambda posterior: posterior.mean)
    assert all(not posterior.mean.any() for posterior in without.semantic.values())


def test_latents_are_hidden_in_training_alone(model: VectorWriter) -> None:
    latent = torch.ones(4_000, 3)
    torch.manual_seed(0)
    kept = model.train().hidden(latent)
    assert set(kept.sum(1).tolist()) == {0.0, 3.0}
    assert float(kept[:, 0].mean()) == pytest.approx(0.5, abs=0.03)
    assert torch.equal(model.eval().hidden(latent), latent)


def test_what_can_not_be_is_refused(
    model: VectorWriter, batch: Batch, tiny: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    with pytest.raises(UsageError, match=r"vectors of baseline:words.*bgt_core\.open_encoder"):
        model.encoder("semantic", "en")(batch.sides["en"])
    with pytest.raises(UsageError, match=r"hidden_share 1\.0"):
        tiny("writer", hidden_share=1.0).build(tokenizer)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30])
def test_vectors_of_any_scale_are_standardised_alike(scale: float) -> None:
    vectors = torch.randn(50, 12, generator=torch.Generator().manual_seed(0)) + 0.5
    plain, scaled = StoredVector(12, 0.0, "x"), StoredVector(12, 0.0, "x")
    plain.fit(vectors)
    scaled.fit(vectors * scale)
    assert_close(scaled.standardise(vectors * scale), plain.standardise(vectors))
    assert plain.standardise(vectors).square().sum(1).mean().sqrt() == pytest.approx(LENGTH, rel=1e-5)
