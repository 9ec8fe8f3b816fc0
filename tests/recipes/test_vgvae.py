"""Test the recipe of the vMF-Gaussian VAE: its settings, the latents that each prediction gets, and its errors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from bgt_core import recipes
from bgt_core.contracts import SEMANTIC, SYNTACTIC, Batch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.posterior import Gaussian, VonMisesFisher
from bgt_core.recipes import Recipe

IN_BATCH = {"objective.margin.mined_only": False}
OFF = {"objective.paraphrase.weight": 0.0, "objective.position.weight": 0.0, "objective.margin.weight": 0.0}


@pytest.mark.parametrize("decoder", ["bag-of-words", "lstm", "lstm-without-previous-word"])
def test_a_paraphrase_contributes_its_semantic_latent_only(
    decoder: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    model = tiny("vgvae", **{"model.decoder": decoder}).build(tokenizer).eval()
    out = model(batch, lambda posterior: posterior.mean)
    y = {column: posterior.mean for column, posterior in out.semantic.items()}
    z = {column: out.posteriors[SYNTACTIC][f"syntactic/{column}"].mean for column in batch.sides}
    latents = {prediction.name: prediction.latent for prediction in out.predictions}
    for own, other in (("en", "fr"), ("fr", "en")):
        assert torch.equal(latents[f"reconstruct/{own}"], torch.cat([z[own], y[own]], 1))
        assert torch.equal(latents[f"paraphrase/{own}"], torch.cat([z[own], y[other]], 1))
        assert torch.equal(latents[f"position/{own}"], z[own])
        assert isinstance(out.posteriors[SEMANTIC][f"semantic/{own}"], VonMisesFisher)
        assert isinstance(out.posteriors[SYNTACTIC][f"syntactic/{own}"], Gaussian)
    assert y["en"].norm(dim=1).tolist() == pytest.approx([1.0] * len(batch), rel=1e-5)
    assert all(posterior.concentration.min() > 1 for posterior in out.semantic.values())
    assert bool(model.writes) == (decoder != "bag-of-words")


@pytest.mark.parametrize(
    ("settings", "terms"),
    [
        ({}, {"paraphrase", "position", "margin"}),
        ({"objective.paraphrase.weight": 0.0}, {"position", "margin"}),
        ({"objective.position.weight": 0.0}, {"paraphrase", "margin"}),
        ({"objective.margin.weight": 0.0}, {"paraphrase", "position"}),
        (OFF, set()),
    ],
)
def test_every_row_of_the_table_is_a_setting(
    settings: dict[str, Any], terms: set[str], tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    recipe = tiny("vgvae", **(IN_BATCH | settings))
    loss = recipe.objective(recipe.build(tokenizer)(batch), step=0)
    assert {name.split("/")[0] for name in loss.terms} == {"reconstruct", "kl", *terms}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model.decoder": "gru"}, "decoder 'gru': choose from bag-of-words, lstm, lstm-without-previous-word"),
        ({"model.syntactic_body": "gran"}, "syntactic_body 'gran': choose from average, lstm"),
        ({"model.semantic_dim": 2}, "semantic_dim 2 must be at least 3"),
        ({"model.syntactic_dim": -1}, "syntactic_dim=-1 should be a number from 0"),
        (
            {"train.mega_batch": 0},
            r"mega_batch 0: .*; set train\.mega_batch, or set objective\.margin\.mined_only=false",
        ),
        ({"train.epochs": 2.0}, r"mega_batch_start 2.0 must be below epochs \(2.0\)"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        recipes.configure("vgvae", settings)
