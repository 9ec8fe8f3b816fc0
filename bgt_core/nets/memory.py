"""How a decoder reads a latent as a memory: unbound at positions (`nets.binding`), or by linear maps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bgt_core.backend import matmul_dtype
from bgt_core.nets.binding import Binding
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import CrossAttention, sinusoids, xavier_linear


class Memory(nn.Module):
    """A part of a decoder's latent, read at each token and as S slots for attention."""

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """The memory's content for each token at its own position: (B, L), (N,) -> (N, H)."""
        raise NotImplementedError

    def states(self, latent: Tensor) -> Tensor:
        """The slots: (B, L) -> (B, S, H)."""
        raise NotImplementedError

    def keys_values(self, latent: Tensor, layers: Sequence[CrossAttention]) -> list[Tensor | None]:
        """The keys and values of the slots for each attention: (B, L) -> (2, B, heads, S, H/heads) each."""
        states = self.states(latent)
        batch, slots, _ = states.shape
        real = torch.ones(batch, slots, dtype=torch.bool, device=latent.device)
        layout = PackedLayout((batch, slots), torch.arange(batch * slots, device=latent.device), real)
        return [layer.keys_values(states.flatten(0, 1), layout) for layer in layers]


class LinearMemory(Memory):
    """Read a latent by linear maps: one for each slot, and one that every token gets.

    Args:
        latent: Units of a decoder's latent, L.
        width: Width of the decoder, H.
        slots: Number of slots for attention, S.
    """

    def __init__(self, latent: int, width: int, slots: int):
        super().__init__()
        self.own, self.slot = xavier_linear(latent, width), xavier_linear(latent, slots * width)
        # a hidden latent and a dropped word are both 0; the gradients of a layer norm of 0 explode
        nn.init.normal_(self.own.bias, std=width**-0.5)
        self.width = width

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        """See `Memory.at`: the same at every position."""
        return layout.repeat(self.own(latent))

    def states(self, latent: Tensor) -> Tensor:
        """See `Memory.states`."""
        return self.slot(latent).unflatten(-1, (-1, self.width))


class MemoryReader(Memory):
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

    def states(self, latent: Tensor) -> Tensor:
        """See `Memory.states`."""
        positions = torch.arange(self.slots, device=latent.device)
        unbound = self.binding.unbind(latent[:, None, self.units], positions)  # (B, S, K)
        states = self.slot(unbound.to(matmul_dtype(unbound)))
        return states + sinusoids(0, self.slots, states)
