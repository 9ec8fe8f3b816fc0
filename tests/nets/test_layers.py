"""Transformer layers compute the same values as torch's layers and as formulas."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import Tokens
from bgt_core.nets import layers
from bgt_core.nets.layers import EncoderLayer, sinusoids
from bgt_core.nets.operations import PackedLayout
from tests.close import FLOAT32, assert_close

V, H = 19, 8
Stir = Callable[[nn.Module], nn.Module]


def copy_layer(theirs: Any, ours: Any, *norms: nn.LayerNorm) -> None:
    """Copy the weights of our Transformer layer into torch's. `norms` are our layer norms in torch's order."""
    modules = [
        (theirs.self_attn.out_proj, ours.attention.out),
        (theirs.linear1, ours.feed[0]),
        (theirs.linear2, ours.feed[2]),
        *((getattr(theirs, f"norm{number}"), norm) for number, norm in enumerate(norms, 1)),
    ]
    for to, source in modules:
        to.load_state_dict(source.state_dict())
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(ours.attention.qkv.weight)
        theirs.self_attn.in_proj_bias.copy_(ours.attention.qkv.bias)


def test_an_encoder_layer_is_torchs(stirred: Stir, random_tokens: Callable[..., Tokens]) -> None:
    ours = stirred(EncoderLayer(H, 12, 2, dropout=0.0)).double()
    theirs = nn.TransformerEncoderLayer(H, 2, 12, dropout=0.0, batch_first=True, dtype=torch.float64)
    assert isinstance(ours, EncoderLayer)
    copy_layer(theirs, ours, ours.norm_attention, ours.norm_feed)
    side = random_tokens([5, 2, 1], V)
    x = torch.randn(3, 5, H, dtype=torch.float64)
    expected = theirs(x, src_key_padding_mask=~side.mask)[side.mask]
    layout = PackedLayout.of(side)
    output = ours(x[side.mask], layout, side.mask[:, None, None, :])
    assert_close(output, expected)


def test_positions_are_sines_then_cosines() -> None:
    table = sinusoids(3, 4, torch.zeros(1, 8, dtype=torch.float64))  # (4, 8)
    for row, position in enumerate(range(3, 7)):
        angles = [position * 10_000 ** (-i / 3) for i in range(4)]
        expected = [*map(math.sin, angles), *map(math.cos, angles)]
        assert_close(table[row], expected, FLOAT32)


@pytest.mark.parametrize("masked", [None, (2, 1, 1, 50), (1, 1, 50, 50), (2, 1, 50, 50)])
def test_attention_in_blocks_is_that_of_the_whole(
    masked: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = torch.randn(3, 2, 3, 50, 8, dtype=torch.float64)
    allowed = None if masked is None else torch.rand(masked) < 0.7
    monkeypatch.setattr(layers, "BLOCK_SCORES", 2 * 3 * 50 * 7)  # small enough for only 7 queries per block
    assert [block.stop - block.start for block in layers.blocks_of(q, k)] == [7] * 8
    assert_close(layers.attend(q, k, v, allowed), F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))
