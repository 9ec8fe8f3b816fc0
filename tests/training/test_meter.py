"""What a training reports of its updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.recipes import Recipe
from bgt_core.training.meter import Meter
from bgt_core.training.workers import SINGLE_PROCESS


def test_a_term_of_some_rows_is_the_mean_of_those(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    recipe = tiny("var-siamese-reformulate", dropout=0.0)
    torch.manual_seed(0)
    model = recipe.build(tokenizer).eval()
    labels = torch.zeros(len(batch))
    labels[[0, 3]] = 1
    meter = Meter(SINGLE_PROCESS)
    for number, labelled in enumerate([replace(batch, labels=labels), replace(batch, labels=torch.zeros(len(batch)))]):
        loss = recipe.objective(model(labelled), step=1)
        meter.sums.add(number, {"loss": loss.total.detach(), **loss.terms}, labelled)
    reported = meter.row(learning_rate=1e-3)
    predictions = model(replace(batch, labels=labels)).predictions
    expected = {each.name: each.nll()[1].mean().item() for each in predictions if each.role == "paraphrase"}
    assert len(expected) == 2
    assert {name: reported[name] for name in expected} == pytest.approx(expected, rel=0.2)  # latents are drawn anew
