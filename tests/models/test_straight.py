"""The fast form of training against the straight one: concatenated latents, padded positions, full logits."""

from __future__ import annotations

import pytest
import torch

from benchmarks.straight import StraightBGT
from benchmarks.workload import batch_of
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

    batch = batch_of([{"en": sentence(), "fr": sentence()} for _ in range(12)], turn=0)
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


def test_fused_matrices_that_were_trained_go_back_into_the_model(model: BGT) -> None:
    straight = StraightBGT(model, dropout=0.0)
    with torch.no_grad():
        for whole in straight.both.values():
            whole.mul_(3).add_(torch.rand_like(whole))
    straight.write_back()
    anew = StraightBGT(model, dropout=0.0)
    assert all(torch.equal(whole, straight.both[name]) for name, whole in anew.both.items())
