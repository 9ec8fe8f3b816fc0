"""Results on a CUDA device equal results on the CPU up to rounding errors."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import bgt_core
from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.nets.layers import attend
from bgt_core.recipes import Recipe
from tests.close import assert_close

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("latent", ["semantic", "language"])
def test_vectors_equal_those_of_the_cpu(saved: Path, grammar: list[Pair], latent: str) -> None:
    sentences = [pair.texts["en"] for pair in grammar]
    gpu, cpu = (
        bgt_core.load(saved, device, "fp32").embed(sentences, lang="en", latent=latent) for device in ("cuda", "cpu")
    )
    assert_close(gpu, cpu, 1e-3)


@pytest.mark.parametrize("name", ["bgt", "bilingual-trans", "english-vae-lstm", "sp", "gran"])
def test_loss_and_gradients_equal_those_of_the_cpu(
    name: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    recipe = tiny(name, **({} if name in ("sp", "gran") else {"readout": "mean"}))
    losses, gradients = [], []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).to(device)
        loss = recipe.objective(model(batch.to(device)), step=1)
        loss.total.backward()
        losses.append(loss.total.item())
        gradients.append({key: value.grad.cpu() for key, value in model.named_parameters() if value.grad is not None})
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert gradients[0].keys() == gradients[1].keys()
    largest = max(gradient.abs().max().item() for gradient in gradients[0].values())
    for key, gradient in gradients[0].items():
        assert_close(gradients[1][key], gradient, 1e-3, scale=largest)


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-3), (torch.bfloat16, 1e-2)])
def test_attention_of_any_shape_equals_that_of_the_cpu(dtype: torch.dtype, within: float) -> None:
    draw = torch.Generator().manual_seed(0)
    for queries, keys in ((1, 1), (7, 24), (24, 24), (37, 13)):
        query, key, value = (
            torch.randn(3, 4, length, 64, generator=draw).to(dtype) for length in (queries, keys, keys)
        )
        allowed = torch.rand(3, 1, 1, keys, generator=draw) < 0.8
        allowed[..., 0] = True
        for mask in (None, allowed):
            expected = attend(query.float(), key.float(), value.float(), mask)
            on_gpu = attend(query.cuda(), key.cuda(), value.cuda(), mask if mask is None else mask.cuda()).float().cpu()
            assert (on_gpu - expected).norm() <= within * expected.norm()
