"""A new objective and a new model family, each in one file that leaves the package alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import bgt_core
from bgt_core.contracts import SEMANTIC, Batch, Loss, Outputs, Readout, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.models.latent import LatentModel
from bgt_core.nets.encoders import Encoder
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.margin import Margin
from bgt_core.objectives.part import Part
from bgt_core.posterior import Point
from bgt_core.recipes import RECIPES, DataConfig, Recipe
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True)
class Decorrelation(Part):
    """The squared cosine of different units over the batch."""

    weight: float = 0.1

    def __call__(self, out: Outputs, step: int) -> Loss:
        means = torch.cat([posterior.mean for posterior in out.semantic.values()])
        units = nn.functional.normalize(means - means.mean(0), dim=0)  # (N, L)
        cost = (units.T @ units).fill_diagonal_(0).square().sum()
        return Loss(cost, {"decorrelation": cost.detach()})


class MaxPooling(nn.Module):
    """A sentence is the largest value of each unit over its tokens."""

    def __init__(self, vocab_size: int, width: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)

    def forward(self, side: Tokens, layout: object = None) -> Tensor:
        return self.table(side.ids).masked_fill(~side.mask[:, :, None], -torch.inf).amax(1)


class MaxPooled(LatentModel):
    """One encoder for all languages."""

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        return Outputs({column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}, {})


@dataclass(frozen=True, kw_only=True)
class MaxPooledConfig:
    semantic_dim: int = 32

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> MaxPooled:
        encoder = Encoder(MaxPooling(tokenizer.vocab_size, self.semantic_dim), Point)
        return MaxPooled(tuple(dict.fromkeys(columns.values())), {SEMANTIC: encoder})


def trained(recipe: Callable[[], Recipe], data: Path, out: Path, **settings: object) -> list[dict[str, Any]]:
    """Train a recipe under its name, open what was trained, embed with it; the rows of its metrics."""
    RECIPES["mine"] = recipe
    try:
        last = bgt_core.train("mine", [data], out, overrides=settings, device="cpu")
        vectors = bgt_core.load(last, "cpu").embed(["Where is the dog?", "It is late."], lang="en")
        assert vectors.shape == (2, recipe().model.semantic_dim)
    finally:
        del RECIPES["mine"]
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_an_objective_of_ones_own(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    def recipe() -> Recipe:
        small = tiny()
        return replace(small, name="mine", objective=Sum({**small.objective, "decorrelation": Decorrelation()}))

    costs = []
    for weight in (0.1, 1e5):
        rows = trained(recipe, tsv, tmp_path / f"run-{weight:g}", **{"objective.decorrelation.weight": weight})
        costs.append(next(row["decorrelation"] for row in rows if row["kind"] == "train"))
    assert 0 < costs[1] < costs[0]


def test_a_model_family_of_ones_own(tsv: Path, tmp_path: Path) -> None:
    def recipe() -> Recipe:
        return Recipe(
            name="mine",
            model=MaxPooledConfig(),
            objective=Sum({"margin": Margin()}),
            data=DataConfig(vocab_size=400, min_tokens=1, valid_pairs=60),
            train=TrainConfig(epochs=30.0, batch_tokens=600, learning_rate=3e-2, warmup_steps=0),
        )

    before, after = (
        trained(recipe, tsv, tmp_path / f"run-{epochs:g}", **{"train.epochs": epochs})[-1] for epochs in (0.0, 30.0)
    )
    assert after["retrieval/en-fr"] > 2 * before["retrieval/en-fr"]
