"""The fast form of training against the straight one: concatenated latents, padded positions, full logits."""

from __future__ import annotations

import pytest
import torch

from benchmarks.straight import StraightBGT, random_batches
from bgt_core import recipes
from bgt_core.contracts import EOS
from bgt_core.data.text import Tokenizer
from bgt_core.models.bgt import BGT

V = 60


class Pieces(Tokenizer):
    """All that `bgt` asks of a tokenizer."""

    def __init__(self) -> None:
        self.vocab_size = V


@pytest.fixture
def model() -> BGT:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "ffn_dim": 24, "heads": 2}
    bgt = recipes.build("bgt", {**sizes, "dropout": 0.0, "readout": "mean"}).build(Pieces())
    assert isinstance(bgt, BGT)
    return bgt.double()


def test_loss_and_every_gradient_are_those_of_the_straight_form(model: BGT) -> None:
    draw = torch.Generator().manual_seed(1)

    def sentence() -> list[int]:
        length = int(torch.randint(1, 30, (1,), generator=draw))
        return [*torch.randint(4, V, (length,), generator=draw).tolist(), EOS]

    (batch,) = random_batches([{"en": sentence(), "fr": sentence()} for _ in range(12)], 1_000)
    straight = StraightBGT(model, dropout=0.0)
    expected = straight(batch, 0.3, 0.1)
    expected.backward()
    gradients = straight.gradients()
    model.zero_grad()

    objective = recipes.build("bgt", {"objective.elbo.warmup_steps": 10}).objective
    loss = objective(model(batch), 3).total
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    assert gradients.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        error = (parameter.grad - gradients[name]).norm()
        assert error <= 1e-10 * gradients[name].norm().clamp(min=1e-3), name


def test_random_batches_hold_every_pair_once_within_the_budget() -> None:
    pairs = [{"en": [5] * n + [EOS], "fr": [6] * (n % 7) + [EOS]} for n in range(1, 40)]
    batches = random_batches(pairs, 100)
    lengths = [int(row.sum()) - 1 for batch in batches for row in batch.sides["en"].mask]
    assert lengths == list(range(1, 40))
    for batch in batches:
        assert all(side.ids.numel() <= 100 for side in batch.sides.values())
