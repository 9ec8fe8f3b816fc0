"""Vectors bound to positions and read back, against closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from bgt_core.errors import BgtError
from bgt_core.nets.binding import Binding
from tests.close import FLOAT32, assert_close


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("position", [0.0, 1.0, 7.5, -3.25, 1_000.0])
def test_one_vector_is_read_back_from_any_position(position: float) -> None:
    binding, vector = Binding(16).double(), random(16)
    bound = binding.bind(vector, torch.tensor(position))
    assert_close(binding.unbind(bound, torch.tensor(position)), vector)
    assert_close(bound.norm(), vector.norm())


def test_binding_multiplies_complex_numbers_of_length_one() -> None:
    binding, vectors, positions = Binding(10).double(), random(4, 10), torch.tensor([0.0, 1.0, 2.5, 40.0])
    turns = torch.exp(1j * positions[:, None] * binding.angles(vectors))
    expected = torch.complex(*vectors.chunk(2, dim=-1)) * turns
    bound = torch.complex(*binding.bind(vectors, positions).chunk(2, dim=-1))
    assert_close(bound, expected)


def test_whole_positions_are_orthogonal() -> None:
    binding = Binding(32).double()
    distance = torch.arange(1, 16)[:, None]
    assert_close(torch.exp(1j * distance * binding.angles(torch.zeros(()))).mean(1), 0, FLOAT32, scale=1)


def test_a_value_that_every_number_carries_is_read_back_exactly_for_as_many_positions_as_numbers() -> None:
    """With one complex value in all numbers, binding is a discrete Fourier transform: its inverse is the mean."""
    binding, positions = Binding(32).double(), torch.arange(16)
    values = random(16, 2)
    sentence = torch.cat([values[:, :1].expand(16, 16), values[:, 1:].expand(16, 16)], dim=1)
    memory = binding.bind(sentence, positions).sum(0)
    unbound = binding.unbind(memory, positions).unflatten(1, (2, 16)).mean(2)
    assert_close(unbound, values)


@pytest.mark.parametrize(("width", "at_least"), [(64, 0.3), (512, 0.99)])
def test_among_many_vectors_the_bound_one_is_found_the_better_the_wider(width: int, at_least: float) -> None:
    """Ten of 1,000 vectors are bound. What is unbound has a cosine of about 1 / sqrt(10) with the right vector, and
    with a wrong one 0 give or take 1 / sqrt(width)."""
    binding, words = Binding(width).double(), torch.nn.functional.normalize(random(1_000, width), dim=-1)
    chosen = torch.arange(10) * 7
    unbound = binding.unbind(binding.bind(words[chosen], torch.arange(10)).sum(0), torch.arange(10))
    cosines = torch.nn.functional.normalize(unbound, dim=-1) @ words.T
    assert (cosines.argmax(1) == chosen).double().mean() >= at_least
    right = cosines[torch.arange(10), chosen]
    assert abs(right.mean() - 1 / math.sqrt(10)) < 4 / math.sqrt(10 * width)


def test_products_depend_on_the_distance_of_positions_alone() -> None:
    binding, one, two = Binding(8).double(), random(8), random(8, seed=1)
    near = binding.bind(one, torch.tensor(2.0)) @ binding.bind(two, torch.tensor(5.0))
    far = binding.bind(one, torch.tensor(102.0)) @ binding.bind(two, torch.tensor(105.0))
    assert_close(near, far)


def test_angles_are_evenly_spaced_over_the_circle_and_never_saved() -> None:
    binding = Binding(8)
    assert_close(binding.angles(torch.zeros(())), math.pi * torch.tensor([-0.75, -0.25, 0.25, 0.75]))
    assert Binding(2).angles(torch.zeros(())).tolist() == [0.0] and binding.state_dict() == {}


@pytest.mark.parametrize("width", [0, 7])
def test_a_width_without_pairs_is_refused(width: int) -> None:
    with pytest.raises(BgtError, match=f"composed width {width} must be an even number"):
        Binding(width)
