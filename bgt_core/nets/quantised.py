"""Encoders with weights of 8 bits, for a CPU."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from bgt_core.backend import Int8Weight, Linear, linear_int8, matmul_dtype
from bgt_core.device import cpu_has
from bgt_core.nets.encoders import Encoder

TINY = 1e-30  # replaces the largest value if all are zero


class Int8Linear(nn.Module):
    """x W^T + b with W in 8 bits, with a scale for each row of W, and x rounded to 8 bits with one scale.

    Products are exact sums of integers; the error is that of rounding, about 1% of the result's norm.
    """

    def __init__(self, layer: nn.Linear):
        super().__init__()
        weight = layer.weight.detach()
        scales = weight.abs().amax(1).clamp(min=TINY) / 127
        self.weight = Int8Weight.pack((weight / scales[:, None]).round().to(torch.int8), scales)
        self.bias = layer.bias if layer.bias is None else layer.bias.detach()
        # x is unsigned; it has 7 bits without VNNI, which adds pairs of products in 16 bits
        self.zero = 128 if cpu_has("avx512_vnni") else 64

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., N), in the dtype of other products."""
        low, high = x.aminmax()
        scale = max(-low.item(), high.item(), TINY) / (self.zero - 1)
        half = torch.tensor(self.zero + 0.5, dtype=torch.float32, device="cpu")
        rounded = torch.add(half, x.float(), alpha=1 / scale).to(torch.uint8)  # truncates
        return linear_int8(rounded, scale, self.zero, self.weight, self.bias, matmul_dtype(x))


def quantised(encoder: Encoder) -> Encoder:
    """The same encoder with every Linear of its body in 8 bits; the other parts are shared with it."""
    return Encoder(_replaced(encoder.body), encoder.head)


def _replaced(module: nn.Module) -> nn.Module:
    if isinstance(module, Linear):
        return Int8Linear(module)
    replaced = copy.copy(module)
    replaced._modules = {name: None if part is None else _replaced(part) for name, part in module._modules.items()}
    return replaced
