"""How a decoder reads a latent in which vectors are bound to positions (`nets.binding`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bgt_core.backend import matmul_dtype
from bgt_core.nets.binding import Binding
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, sinusoids, xavier_linear


class MemoryReader(nn.Module):
    """Reads the bound units of a latent at any position, and as a row of slots to attend to.

    Args:
        first: Where the bound units begin in the latent that a decoder reads.
        bound: How many units are bound.
        width: Width of the decoder, H.
        slots: Positions that can be attended to, S: the memory unbound at 0, 1, ..., S - 1.
    """

    def __init__(self, first: int, bound: int, width: int, slots: int):
        super().__init__()
        self.units, self.slots = slice(first, first + bound), slots
        self.binding = Binding(bound)
        self.own, self.slot = xavier_linear(bound, width, bias=False), xavier_linear(bound, width, bias=False)

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """What each token finds in the memory of its sentence at its own position: (B, L), (N,) -> (N, H)."""
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
