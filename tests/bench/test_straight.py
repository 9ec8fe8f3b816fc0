"""The fast BGT has the losses and gradients of a simple one: concatenated latents, padded batches, all logits."""

import pytest
import torch

from bench.straight import StraightBGT
from bench.workload import SizedTokenizer, batch_of
from bgt_core import recipes
from bgt_core.contracts import EOS, LANGUAGE, SEMANTIC
from bgt_core.models.bgt import BGT
from bgt_core.objectives import Sum
from bgt_core.recipes import Recipe

V = 60


@pytest.fixture(params=["bgt", "bgt-plus"])
def recipe(request: pytest.FixtureRequest) -> Recipe:
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "ffn_dim": 24, "heads": 2}
    weights = {f"objective.elbo.weights.{latent}": 1.0 for latent in (SEMANTIC, LANGUAGE)}
    settings = {**sizes, **weights, "dropout": 0.0, "word_dropout": 0.0, "readout": "mean"}
    return recipes.configure(request.param, {**settings, "objective.elbo.warmup_steps": 10})


@pytest.fixture
def model(recipe: Recipe) -> BGT:
    torch.manual_seed(0)
    bgt = recipe.build(SizedTokenizer(V))
    assert isinstance(bgt, BGT)
    for parameter in bgt.parameters():
        if not parameter.any():  # a weight of only zeros would pass no gradient on to the Transformer
            torch.nn.init.normal_(parameter, std=0.1)
    return bgt.double()


def test_loss_and_every_gradient_are_those_of_the_straight_form(model: BGT, recipe: Recipe) -> None:
    draw = torch.Generator().manual_seed(1)

    def sentence() -> list[int]:
        length = int(torch.randint(1, 30, (1,), generator=draw))
        return [*torch.randint(4, V, (length,), generator=draw).tolist(), EOS]

    batch = batch_of([{"en": sentence(), "fr": sentence()} for _ in range(12)], turn=0)
    others = [Sum({name: part}) for name, part in recipe.objective.counting.items() if name != "elbo"]
    straight = StraightBGT(model, 0.0, others)
    expected = straight(batch, 0.3, 0.1)
    expected.backward()
    gradients = straight.gradients()
    model.zero_grad()

    loss = recipe.objective(model(batch), 3).total
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    assert gradients.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        error = (parameter.grad - gradients[name]).norm()
        assert error <= 1e-10 * gradients[name].norm().clamp(min=1e-3), name
