"""The fused loss against full scores and autograd."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import OutputLayer, Tokens
from bgt_core.nets import output
from bgt_core.nets.output import TiedOutput, UntiedOutput
from bgt_core.nets.transformer import embedding

V, H, L = 23, 6, 5
LENGTHS = [[1], [3, 7, 1, 5], [150, 90, 170]]  # the last one is longer than a chunk


def layers() -> dict[str, OutputLayer]:
    torch.manual_seed(1)
    tied = TiedOutput(embedding(V, H), L)
    with torch.no_grad():
        tied.table.weight[0] = torch.randn(H)  # training moves the row of PAD too
    return {"untied": UntiedOutput(V, H, L).double(), "tied": tied.double()}


def naive(layer: OutputLayer, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple:
    """Label-smoothed cross-entropy as in fairseq, from full scores."""
    copied = latent[:, None, :].expand(-1, features.shape[1], -1)
    if isinstance(layer, UntiedOutput):
        matrix = torch.cat([layer.hidden.weight, layer.latent.weight], dim=1)
        scores = torch.cat([features, copied], dim=-1) @ matrix.T
    else:
        scores = (features + copied @ layer.project.weight.T) @ layer.table.weight.T
    nll = F.cross_entropy(scores.flatten(0, 1), target.ids.flatten(), reduction="none").view(target.ids.shape)
    spread = -scores.log_softmax(-1).mean(-1)
    real = target.mask.to(scores.dtype)
    return (((1 - smoothing) * nll + smoothing * spread) * real).sum(), (nll * real).sum(1), scores


@pytest.mark.parametrize("kind", ["untied", "tied"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("lengths", LENGTHS, ids=["one piece", "padded", "over a chunk"])
def test_loss_nats_and_gradients_are_those_of_full_scores(
    kind: str, smoothing: float, lengths: list[int], random_tokens: Callable[..., Tokens]
) -> None:
    layer, target = layers()[kind], random_tokens(lengths, V)
    assert isinstance(layer, nn.Module)
    if len(lengths) == 3:
        assert sum(lengths) > output.CHUNK
    features = torch.randn(*target.ids.shape, H, dtype=torch.float64, requires_grad=True)
    latent = torch.randn(len(lengths), L, dtype=torch.float64, requires_grad=True)
    wanted = [features, latent, *layer.parameters()]

    expected, expected_nats, scores = naive(layer, features, latent, target, smoothing)
    expected_gradients = torch.autograd.grad(3 * expected, wanted)
    loss, nats = layer.nll(features, latent, target, smoothing)
    gradients = torch.autograd.grad(3 * loss, wanted)

    torch.testing.assert_close(layer.logits(features, latent), scores, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(nats, expected_nats, rtol=1e-10, atol=1e-10)
    assert not nats.requires_grad
    for gradient, reference in zip(gradients, expected_gradients, strict=True):
        assert reference.abs().max() > 0
        torch.testing.assert_close(gradient, reference, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_without_gradient_the_loss_is_the_same(kind: str, random_tokens: Callable[..., Tokens]) -> None:
    layer, target = layers()[kind], random_tokens([4, 9], V)
    features, latent = torch.randn(2, 9, H, dtype=torch.float64), torch.randn(2, L, dtype=torch.float64)
    with_gradient = layer.nll(features, latent, target, 0.1)
    with torch.inference_mode():
        without = layer.nll(features, latent, target, 0.1)
    for one, other in zip(with_gradient, without, strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=1e-12, atol=1e-12)


def test_huge_scores_do_not_overflow(random_tokens: Callable[..., Tokens]) -> None:
    layer, target = layers()["untied"], random_tokens([5], V)
    features = 1e4 * torch.randn(1, 5, H, dtype=torch.float64)
    loss, nats = layer.nll(features, torch.zeros(1, L, dtype=torch.float64), target, 0.0)
    expected = naive(layer, features, torch.zeros(1, L, dtype=torch.float64), target, 0.0)
    torch.testing.assert_close(loss, expected[0])
    torch.testing.assert_close(nats, expected[1])


def test_in_bf16_the_loss_stays_near_and_in_float32(random_tokens: Callable[..., Tokens]) -> None:
    layer, target = layers()["untied"], random_tokens([40, 60], V)
    assert isinstance(layer, nn.Module)
    layer = layer.float()
    features, latent = torch.randn(2, 60, H, requires_grad=True), torch.randn(2, L)
    exact, _ = layer.nll(features, latent, target, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        rough, nats = layer.nll(features, latent, target, 0.1)
    rough.backward()
    assert rough.dtype == nats.dtype == features.grad.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=5e-3, atol=0)
