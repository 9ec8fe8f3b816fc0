"""Read a latent in which vectors are bound to positions (`nets.binding`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bgt_core.backend import matmul_dtype
from bgt_core.nets.binding import Binding
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, sinusoids, xavier_linear


class MemoryReader(nn.Module):
    """Read the bound units of a latent at any position, or as slots for attention.

    Args:
        first: Index of the first bound unit in a decoder's latent.
        bound: Number of bound units.
        width: Width of the decoder, H.
        slots: Number of positions for attention, S: the memory unbound at 0, 1, ..., S - 1.
    """

    def __init__(self, first: int, bound: int, width: int, slots: int):
        super().__init__()
        self.units, self.slots = slice(first, first + bound), slots
        self.binding = Binding(bound)
        self.own, self.slot = xavier_linear(bound, width, bias=False), xavier_linear(bound, width, bias=False)

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """The memory's content for each token at its own position: (B, L), (N,) -> (N, H)."""
        unbound = self.binding.unbind(layout.repeat(latent[:, self.units]), positions)  # (N, K)
        return self.own(unbound.to(matmul_dtype(unbound)))

    def keys_values(self, latent: Tensor, layers: Sequence[CrossAttention]) -> list[Tensor | None]:
        """The keys and values of the slots for each attention: (B, L) -> (2, B, heads, S, H/heads) each."""
        positions = torch.arange(self.slots, device=latent.device)
        unbound = self.binding.unbind(latent[:, None, self.units], positions)  # (B, S, K)
        states = self.slot(unbound.to(matmul_dtype(unbound)))
        states = (states + sinusoids(0, self.slots, states)).flatten(0, 1)  # (B * S, H)
        real = torch.ones(len(latent), self.slots, dtype=torch.bool, device=latent.device)
        layout = PackedLayout((len(latent), self.slots), torch.arange(len(states), device=latent.device), real)
        return [layer.keys_values(states, layout) for layer in layers]
