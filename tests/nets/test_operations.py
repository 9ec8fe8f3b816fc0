"""With our autograd functions, recipes have the losses and gradients of plain PyTorch, for packed and padded tokens."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from bgt_core import recipes
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.nets import operations
from bgt_core.nets.layers import Dropout
from bgt_core.nets.operations import PackedLayout
from bgt_core.recipes import RECIPES, Recipe
from tests.close import assert_close

LABELLED = {"data.columns": ["en", "fr", "gold:label"]}
SETTINGS: dict[str, dict[str, object]] = {
    "pair-classifier": LABELLED,
    "reference-classifier": {"data.columns": ["en", "fr"], "model.d_model": 12},
    "var-siamese": {**LABELLED, "model.base.hidden_dim": 10, "model.base.semantic_dim": 12, "model.hidden_dim": 14},
    "vgvae": {"objective.margin.mined_only": False, "train.mega_batch": 0},
}


def plain_nll(
    x: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor | None,
    rows: torch.Tensor,
    ids: torch.Tensor,
    smoothing: float,
    learns: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = F.linear(x, weight) if offset is None else F.linear(x, weight) + offset[rows]
    log_p = scores.log_softmax(-1)
    gold = -log_p.gather(1, ids[:, None]).squeeze(1)
    return ((1 - smoothing) * gold - smoothing * log_p.mean(-1)).sum(), gold.detach()


PLAIN = {operations._ShortSoftmax: lambda scores: scores.softmax(-1), operations._FusedNLL: plain_nll}


@pytest.mark.parametrize("name", RECIPES)
def test_losses_and_gradients_of_a_recipe_are_those_of_plain_pytorch(
    name: str,
    tiny: Callable[..., Recipe],
    stirred: Callable,
    tokenizer: Tokenizer,
    batch: Batch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sized = recipes.configure(name, SETTINGS[name]) if "classifier" in name or name == "var-siamese" else tiny(name)
    without: dict[str, object] = {key: 0.0 for key in sized.arguments or {} if key.endswith(".dropout")}
    recipe = recipes.configure(name, {**(sized.arguments or {}), **without, **SETTINGS.get(name, {})})
    torch.manual_seed(0)
    model = stirred(recipe.build(tokenizer).double()).train()
    labelled = replace(batch, labels=torch.tensor([0.0, 1, 1, 0, 1, 0]))
    results: list[Any] = []
    for plain in (True, False):
        own = copy.deepcopy(model)  # some models change their buffers in training
        torch.manual_seed(1)
        with monkeypatch.context() as patch:
            for operation, function in PLAIN.items() if plain else ():
                patch.setattr(operation, "apply", function)
            loss = recipe.objective(own(labelled), step=3)
        gradients = torch.autograd.grad(loss.total, list(own.parameters()), materialize_grads=True)
        numbers = (
            [loss.total[None], *map(torch.atleast_1d, loss.terms.values())],
            [each.flatten() for each in gradients],
        )
        results.append(tuple(map(torch.cat, numbers)))
    for expected, given in zip(*results, strict=True):
        assert expected.any()
        assert_close(given, expected)


UNITS = 400_000


@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5, 0.9])
def test_share_dropped_and_expectation(probability: float) -> None:
    torch.manual_seed(0)
    kept = Dropout(probability).train()(torch.ones(UNITS, dtype=torch.float64))
    error = (probability * (1 - probability) / UNITS) ** 0.5
    assert abs((kept == 0).double().mean().item() - probability) < 4 * error + 1 / 65536
    assert abs(kept.mean().item() - 1) < 4 * error / (1 - probability)
    survivors = kept[kept != 0]
    assert torch.equal(survivors, survivors[0].expand_as(survivors))
    assert survivors[0].item() == pytest.approx(1 / (1 - probability), rel=1 / 65536 / (1 - probability))


def test_units_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5).train()(torch.ones(UNITS)) == 0).double()
    for distance in (1, 2, 3, 4, 5, 8):  # near units, because a 64-bit random number serves four units
        together = (dropped[:-distance] * dropped[distance:]).mean().item()
        assert abs(together - 0.25) < 5 * (0.25 * 0.75 / UNITS) ** 0.5


@pytest.mark.parametrize(
    ("lengths", "shapes"),
    [([9, 8, 4, 5, 2, 1], [(4, 9), (1, 2), (1, 1)]), ([1, 9], [(2, 9)]), ([9, 4, 5], [(3, 9)]), ([4, 4], [(2, 4)])],
)
def test_a_block_begins_where_all_that_follow_are_half_as_long(
    random_tokens: Callable[..., Tokens], lengths: list[int], shapes: list[tuple[int, int]]
) -> None:
    side = random_tokens(lengths, 50)
    layout, packed = PackedLayout.of(side), side.ids[side.mask]
    assert [part.shape for _, _, part in layout.length_blocks] == shapes
    assert torch.cat([packed[tokens] for _, tokens, _ in layout.length_blocks]).equal(packed)
    for rows, tokens, part in layout.length_blocks:
        cropped = side.ids[rows, : part.shape[1]]
        assert cropped[part.mask].equal(packed[tokens]) and part.pack(cropped).equal(packed[tokens])
