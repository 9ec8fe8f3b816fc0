"""Holographic binding: store many vectors in one, each under its position (Plate 1995).

A vector of K units is treated as K/2 complex numbers. To bind it to position p, number j is rotated by the angle p *
w_j, as in rotary embeddings (Su et al. 2021). Bound vectors are added up; rotating the sum back by p * w_j gives the
vector bound to p, plus the other vectors, rotated by different angles in each number, which look like noise.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bgt_core.errors import UsageError


class Binding(nn.Module):
    """Binds vectors of `width` units to positions.

    The angles w_j are evenly spaced over the circle. Rotations by different integer positions are then orthogonal, up
    to width / 2 positions: the mean over j of exp(i (p - q) w_j) is 0 unless p = q. A position may be any real number.

    Args:
        width: Units of a bound vector, an even number.

    Raises:
        UsageError: The width is odd or below 2.
    """

    def __init__(self, width: int):
        super().__init__()
        if width < 2 or width % 2:
            raise UsageError(f"composed width {width} must be an even number from 2 on: units are rotated in pairs")
        self.width = width

    def angles(self, like: Tensor) -> Tensor:
        """The angle w_j of each number, (K/2,), on the device of a tensor, in its precision or single precision."""
        numbers = self.width // 2
        dtype = torch.promote_types(like.dtype, torch.float32)
        return math.pi * ((2 * torch.arange(numbers, dtype=dtype, device=like.device) + 1) / numbers - 1)

    def bind(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate each vector by its position.

        Args:
            vectors: (..., K).
            positions: Broadcastable to (...).

        Returns:
            (..., K), with the same norms.
        """
        turns = positions[..., None] * self.angles(vectors)
        cos, sin = turns.cos(), turns.sin()
        real, imaginary = vectors.chunk(2, dim=-1)
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)

    def unbind(self, memory: Tensor, positions: Tensor) -> Tensor:
        """Rotate a sum of bound vectors back: the vector bound to each position, plus noise.

        Args:
            memory: (..., K).
            positions: Broadcastable to (...).

        Returns:
            (..., K).
        """
        return self.bind(memory, -positions)
