"""The average of piece directions, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, UNK, Tokens
from bgt_core.nets.pooling import Mean, ResidualPooling, SIFPooling
from bgt_core.nets.transformer import Transformer, embedding


def test_rare_pieces_count_more_and_the_end_counts_nothing() -> None:
    probabilities = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.5, 0.0005, 0.1])
    average = SIFPooling(probabilities, 3, smooth=5e-4)
    table = average.table.weight.detach().double().numpy()
    direction = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    weight = 5e-4 / (5e-4 + probabilities.double().numpy())
    assert weight[5] == pytest.approx(0.5)
    found = average(Tokens.pad([[4, 5, 5, EOS], [6, EOS], [EOS]], "en"))
    two = (weight[4] * direction[4] + 2 * weight[5] * direction[5]) / 3
    expected = 3**0.5 * np.stack([two, weight[6] * direction[6], np.zeros(3)])  # a direction of 3 units has length √3
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-7)


def test_a_plain_mean_leaves_out_the_end_and_what_is_unknown() -> None:
    mean = Mean(torch.nn.Embedding(7, 3))
    table = mean.table.weight.detach()
    found = mean(Tokens.pad([[4, 5, UNK, 5, EOS], [6, EOS], [EOS], [UNK, EOS]], "en"))
    expected = torch.stack([(table[4] + 2 * table[5]) / 3, table[6], torch.zeros(3), torch.zeros(3)])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("make", [lambda: SIFPooling(torch.rand(30), 8), lambda: Mean(torch.nn.Embedding(30, 8))])
def test_padding_changes_nothing(make: Callable[[], torch.nn.Module], random_tokens: Callable[..., Tokens]) -> None:
    average = make().double()
    lengths = [2, 9, 1, 5]
    side = random_tokens(lengths, 30)
    together = average(side)
    for row, length in enumerate(lengths):
        alone = average(Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en"))
        torch.testing.assert_close(alone[0], together[row], rtol=1e-12, atol=1e-12)


def test_weights_are_not_trained_and_not_saved() -> None:
    average = SIFPooling(torch.rand(9), 4)
    assert [name for name, _ in average.named_parameters()] == ["table.weight"]
    assert set(average.state_dict()) == {"table.weight"}


def test_a_corrected_average_begins_as_the_average(random_tokens: Callable[..., Tokens]) -> None:
    average = SIFPooling(torch.rand(30), 6)
    both = ResidualPooling(average, Transformer(embedding(30, 8), 2, 8, 2, 0.0))
    side = random_tokens([2, 9, 1, 5], 30)
    torch.testing.assert_close(both(side), average(side))
    with torch.no_grad():
        both.correction.weight.normal_()
    torch.testing.assert_close(both(side), average(side) + both.body(side) @ both.correction.weight.T)
