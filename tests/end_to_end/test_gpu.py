"""On a CUDA device: the numbers of the CPU, within what single precision allows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.recipes import Recipe

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("latent", ["semantic", "language"])
def test_vectors_are_those_of_the_cpu(saved: Path, grammar: list[Pair], latent: str) -> None:
    sentences = [pair.texts["en"] for pair in grammar]
    gpu, cpu = (
        bgt_core.load(saved, device, "fp32").embed(sentences, lang="en", latent=latent) for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(gpu, cpu, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["bgt", "bilingual-trans", "english-vae-lstm", "sp", "gran"])
def test_loss_and_gradients_are_those_of_the_cpu(
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
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient, rtol=1e-2, atol=1e-3, msg=key)
