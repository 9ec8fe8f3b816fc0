"""Packed tensors against indexing with a mask."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bgt_core.contracts import Tokens
from bgt_core.nets.packing import PackedLayout
from tests.close import assert_close


@pytest.fixture(params=[[3, 6, 1], [4, 4]], ids=["padded", "whole"])
def side(request: pytest.FixtureRequest, random_tokens: Callable[..., Tokens]) -> Tokens:
    return random_tokens(request.param, 50)


def test_packing_is_indexing_with_the_mask(side: Tokens) -> None:
    assert PackedLayout.of(side).pack(side.ids).tolist() == side.ids[side.mask].tolist()


def test_heads_are_split_and_joined_as_views_of_the_padded(side: Tokens) -> None:
    """Values and gradients; what is made at padding is not read, as attention does not."""
    layout, heads = PackedLayout.of(side), 2
    x = torch.randn(len(side.flat_index), 3 * 8, dtype=torch.float64, requires_grad=True)
    padded = torch.zeros(*side.ids.shape, 3 * 8, dtype=torch.float64).masked_scatter(side.mask[:, :, None], x)
    expected = padded.view(*side.ids.shape, 3, heads, 4).permute(2, 0, 3, 1, 4)  # (3, B, heads, T, 4)
    heads_of_x, real = layout.split(x, 3, heads), side.mask[None, :, None, :, None]
    assert heads_of_x.isfinite().all()
    torch.testing.assert_close(heads_of_x * real, expected * real, rtol=0, atol=0)

    mixed, wanted = (part[0] * part[1] + part[2] for part in (heads_of_x, expected))
    joined, kept = layout.join(mixed), wanted.transpose(1, 2).flatten(2)[side.mask]
    torch.testing.assert_close(joined, kept, rtol=0, atol=0)
    weights = torch.randn_like(joined)
    slopes = [torch.autograd.grad((y * weights).sum(), x)[0] for y in (joined, kept)]
    assert slopes[1].abs().min() > 0
    torch.testing.assert_close(*slopes, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("lengths", "shapes"),
    [([9, 8, 4, 5, 2, 1], [(4, 9), (1, 2), (1, 1)]), ([1, 9], [(2, 9)]), ([9, 4, 5], [(3, 9)]), ([4, 4], [(2, 4)])],
)
def test_a_block_begins_where_all_that_follow_are_half_as_long(
    random_tokens: Callable[..., Tokens], lengths: list[int], shapes: list[tuple[int, int]]
) -> None:
    side = random_tokens(lengths, 50)
    layout, packed = PackedLayout.of(side), side.ids[side.mask]
    assert [part.shape for _, _, part in layout.length_blocks] == shapes
    assert torch.cat([packed[tokens] for _, tokens, _ in layout.length_blocks]).equal(packed)
    for rows, tokens, part in layout.length_blocks:
        cropped = side.ids[rows, : part.shape[1]]
        assert cropped[part.mask].equal(packed[tokens]) and part.pack(cropped).equal(packed[tokens])


def test_blocks_leave_out_columns_that_no_sentence_reaches(random_tokens: Callable[..., Tokens]) -> None:
    side = random_tokens([9, 4, 4], 50)
    ((_, _, part),) = PackedLayout.of(Tokens.of(side.ids[1:], side.mask[1:], "en")).length_blocks
    assert part.shape == (2, 4) and part.whole


def test_sums_and_repeats_follow_the_sentences(side: Tokens) -> None:
    layout, x = PackedLayout.of(side), torch.randn(len(side.flat_index), 5)
    lengths = side.mask.sum(1).tolist()
    parts = x.split(lengths)
    assert_close(layout.sum(x), torch.stack([part.sum(0) for part in parts]))
    assert_close(layout.mean(x), torch.stack([part.mean(0) for part in parts]))
    z = torch.randn(len(lengths), 3)
    assert_close(layout.repeat(z), z.repeat_interleave(torch.tensor(lengths), dim=0))
    assert layout.columns.tolist() == [column for length in lengths for column in range(length)]


def test_half_precision_is_summed_in_single() -> None:
    layout = PackedLayout.of(Tokens.pad([[5] * 1000], "en"))
    ones = torch.full((1000, 1), 1.0, dtype=torch.bfloat16)  # in bf16 a sum of ones stays at 256
    assert layout.sum(ones).item() == 1000
