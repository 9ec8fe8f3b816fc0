"""The average of token directions, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, UNK, Tokens
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.pooling import BoundPooling, MeanPooling, ResidualPooling, SIFPooling
from bgt_core.nets.roles import RolePooling
from bgt_core.nets.transformer import EncoderLayer, Transformer
from tests.close import assert_close


def test_rare_pieces_count_more_and_the_end_counts_nothing() -> None:
    probabilities = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.5, 0.0005, 0.1])
    average = SIFPooling(probabilities, 3, smooth=5e-4)
    table = average.table.weight.detach().double().numpy()
    direction = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    weight = 5e-4 / (5e-4 + probabilities.double().numpy())
    assert weight[5] == pytest.approx(0.5)
    pooled = average(Tokens.pad([[4, 5, 5, EOS], [6, EOS], [EOS]], "en"))
    two = (weight[4] * direction[4] + 2 * weight[5] * direction[5]) / 3
    expected = 3**0.5 * np.stack([two, weight[6] * direction[6], np.zeros(3)])  # a direction of 3 units has length √3
    assert_close(pooled, expected)


def test_a_plain_mean_leaves_out_the_end_and_what_is_unknown() -> None:
    mean = MeanPooling(torch.nn.Embedding(7, 3))
    table = mean.table.weight.detach()
    pooled = mean(Tokens.pad([[4, 5, UNK, 5, EOS], [6, EOS], [EOS], [UNK, EOS]], "en"))
    expected = torch.stack([(table[4] + 2 * table[5]) / 3, table[6], torch.zeros(3), torch.zeros(3)])
    assert_close(pooled, expected)


@pytest.mark.parametrize(
    "make", [lambda: SIFPooling(torch.rand(30), 8), lambda: MeanPooling(torch.nn.Embedding(30, 8))]
)
def test_padding_changes_nothing(make: Callable[[], torch.nn.Module], random_tokens: Callable[..., Tokens]) -> None:
    average = make().double()
    lengths = [2, 9, 1, 5]
    side = random_tokens(lengths, 30)
    together = average(side)
    for row, length in enumerate(lengths):
        alone = average(Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en"))
        assert_close(alone[0], together[row])


def test_weights_are_not_trained_and_not_saved() -> None:
    average = SIFPooling(torch.rand(9), 4)
    assert [name for name, _ in average.named_parameters()] == ["table.weight"]
    assert set(average.state_dict()) == {"table.weight"}


def test_trained_weights_begin_as_sif_and_learn_what_a_finite_difference_says() -> None:
    torch.manual_seed(0)
    probabilities = torch.rand(9)
    fixed, trained = SIFPooling(probabilities, 4), SIFPooling(probabilities, 4, trained=True)
    trained.load_state_dict(fixed.state_dict(), strict=False)
    side = Tokens.pad([[4, 5, 5, EOS], [6, EOS]], "en")
    torch.testing.assert_close(trained(side), fixed(side), rtol=0, atol=0)

    trained = trained.double()
    trained(side).square().sum().backward()
    gradient, step = trained.rarity.grad.clone(), 1e-6  # type: ignore[union-attr]
    for token in (4, 5, 6, 7, EOS):
        moved = []
        for sign in (1, -1):
            with torch.no_grad():
                trained.rarity[token] += sign * step
                moved.append(trained(side).square().sum().item())
                trained.rarity[token] -= sign * step
        assert_close(gradient[token], (moved[0] - moved[1]) / (2 * step), 1e-9)
    assert gradient[7] == gradient[EOS] == 0


def test_widths_and_the_usual_smoothing() -> None:
    table, probabilities = torch.nn.Embedding(9, 5), torch.rand(9)
    assert MeanPooling(table).width == 5
    average = SIFPooling(probabilities, 4)
    assert_close(average.rarity, 5e-4 / (5e-4 + probabilities))
    assert ResidualPooling(average, Transformer(make_embedding(9, 8), 1, 8, 2, 0.0)).width == average.width == 4


def test_a_corrected_average_begins_as_the_average(random_tokens: Callable[..., Tokens]) -> None:
    average = SIFPooling(torch.rand(30), 6)
    both = ResidualPooling(average, Transformer(make_embedding(30, 8), 2, 8, 2, 0.0))
    side = random_tokens([2, 9, 1, 5], 30)
    assert_close(both(side), average(side))
    with torch.no_grad():
        both.correction.weight.normal_()
    assert_close(both(side), average(side) + both.body(side) @ both.correction.weight.T)


@pytest.mark.parametrize("kind", ["mean", "average", "residual", "bound"])
def test_only_the_tokens_of_a_given_layout_are_read(
    kind: str, random_tokens: Callable[..., Tokens], stirred: Callable[[torch.nn.Module], torch.nn.Module]
) -> None:
    """The layout hides the last three tokens of each sentence: the result is that of the shorter sentences."""
    torch.manual_seed(0)
    average, body = SIFPooling(torch.rand(30), 6), Transformer(make_embedding(30, 8), 1, 8, 2, 0.0)
    make: dict[str, Callable[[], torch.nn.Module]] = {
        "mean": lambda: MeanPooling(torch.nn.Embedding(30, 8)),
        "average": lambda: average,
        "residual": lambda: ResidualPooling(average, body),
        "bound": lambda: BoundPooling(average, body, RolePooling([EncoderLayer(8, 8, 2, 0.0)], 6, 16), 10, 0.2, 0.3),
    }
    pooling, side = stirred(make[kind]()).double(), random_tokens([8, 6], 30)
    shown = side.mask & (torch.arange(8) < side.mask.sum(1, keepdim=True) - 3)
    layout = PackedLayout((2, 8), shown.flatten().nonzero()[:, 0], shown)
    short = Tokens.pad([side.ids[0, :5].tolist(), side.ids[1, :3].tolist()], "en")
    assert_close(pooling(side, layout), pooling(short))
    assert (pooling(side, layout) - pooling(side)).abs().max() > 1e-3
