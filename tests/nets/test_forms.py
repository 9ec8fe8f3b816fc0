"""Every model computed by plain PyTorch has the losses and gradients that it has by the fast forms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from bgt_core import recipes
from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.nets.forms import FAST, PLAIN, computing
from bgt_core.recipes import RECIPES, Recipe
from tests.close import assert_close

LABELLED = {"data.columns": ["en", "fr", "gold:label"]}
SETTINGS: dict[str, dict[str, object]] = {
    "pair-classifier": LABELLED,
    "reference-classifier": {"data.columns": ["en", "fr"], "model.d_model": 12},
    "var-siamese": {**LABELLED, "model.base.hidden_dim": 10, "model.base.semantic_dim": 12, "model.hidden_dim": 14},
    "vgvae": {"objective.margin.mined_only": False, "train.mega_batch": 0},
}


@pytest.mark.parametrize("name", RECIPES)
def test_losses_and_gradients_of_a_recipe_are_those_of_plain_pytorch(
    name: str, tiny: Callable[..., Recipe], stirred: Callable, tokenizer: Tokenizer, batch: Batch
) -> None:
    sized = recipes.build(name, SETTINGS[name]) if "classifier" in name or name == "var-siamese" else tiny(name)
    without: dict[str, object] = {key: 0.0 for key in sized.arguments or {} if key.endswith(".dropout")}
    recipe = recipes.build(name, {**(sized.arguments or {}), **without, **SETTINGS.get(name, {})})
    torch.manual_seed(0)
    model = stirred(recipe.build(tokenizer).double()).train()
    labelled = replace(batch, labels=torch.tensor([0.0, 1, 1, 0, 1, 0]))
    results: list[Any] = []
    for forms in (PLAIN, FAST):
        own = copy.deepcopy(model)  # some follow what they have read
        torch.manual_seed(1)
        with computing(forms):
            loss = recipe.objective(own(labelled), step=3)
        gradients = torch.autograd.grad(loss.total, list(own.parameters()), materialize_grads=True)
        numbers = (
            [loss.total[None], *map(torch.atleast_1d, loss.terms.values())],
            [each.flatten() for each in gradients],
        )
        results.append(tuple(map(torch.cat, numbers)))
    for plain, fast in zip(*results, strict=True):
        assert plain.any()
        assert_close(fast, plain)
