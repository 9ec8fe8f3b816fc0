"""The Transformer's parts against torch's own, and what padding and caching must not change."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import EOS, PAD, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets import layers
from bgt_core.nets.decoder import DecoderLayer, TaggedDecoder, TransformerDecoder
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import softmax
from bgt_core.nets.layers import SelfAttention, TokenAndPositionEmbedding, make_embedding, sinusoids
from bgt_core.nets.output import TiedOutput, UntiedOutput
from bgt_core.nets.transformer import EncoderLayer, Transformer
from tests.close import FLOAT32, assert_close

V, H, L = 19, 8, 5
Stir = Callable[[nn.Module], nn.Module]


def full(sentences: int, length: int) -> PackedLayout:
    """Nothing padded."""
    return PackedLayout.of(Tokens.pad([[EOS] * length] * sentences, "en"))


@pytest.fixture(params=["tied", "untied"])
def decoder(request: pytest.FixtureRequest, stirred: Stir) -> TransformerDecoder:
    torch.manual_seed(0)
    table = make_embedding(V, H)
    layer = TiedOutput(table, L) if request.param == "tied" else UntiedOutput(V, H, L)
    sizes = {"layers": 2, "ffn_dim": 12, "heads": 2, "dropout": 0.1, "word_dropout": 0.3}
    decoder = stirred(TransformerDecoder(table, layer, L, **sizes)).double().eval()
    assert isinstance(decoder, TransformerDecoder)
    return decoder


def test_an_encoder_layer_is_torchs(stirred: Stir, random_tokens: Callable[..., Tokens]) -> None:
    ours = stirred(EncoderLayer(H, 12, 2, dropout=0.0)).double()
    theirs = nn.TransformerEncoderLayer(H, 2, 12, dropout=0.0, batch_first=True, dtype=torch.float64)
    assert isinstance(ours, EncoderLayer)
    pairs = [
        (theirs.self_attn.in_proj_weight, ours.attention.qkv.weight),
        (theirs.self_attn.in_proj_bias, ours.attention.qkv.bias),
        (theirs.self_attn.out_proj, ours.attention.out),
        (theirs.linear1, ours.feed[0]),
        (theirs.linear2, ours.feed[2]),
        (theirs.norm1, ours.norm_attention),
        (theirs.norm2, ours.norm_feed),
    ]
    with torch.no_grad():
        for to, source in pairs:
            if isinstance(to, nn.Module):
                to.load_state_dict(source.state_dict())
            else:
                to.copy_(source)
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


def test_words_are_scaled_embeddings_with_positions() -> None:
    words = TokenAndPositionEmbedding(make_embedding(V, H), dropout=0.0)
    ids = torch.tensor([5, 6])
    expected = words.table.weight[ids] * H**0.5 + sinusoids(0, 2, words.table.weight)
    assert_close(words(ids, full(1, 2)), expected)


def test_an_encoder_does_not_see_padding(random_tokens: Callable[..., Tokens], stirred: Stir) -> None:
    torch.manual_seed(0)
    body = stirred(Transformer(make_embedding(V, H), layers=2, ffn_dim=12, heads=2, dropout=0.1)).double().eval()
    lengths = [3, 11, 1, 6]
    side = random_tokens(lengths, V)
    together = body(side)
    for row, length in enumerate(lengths):
        alone = body(Tokens.of(side.ids[row : row + 1, :length], side.mask[row : row + 1, :length], "en"))
        assert_close(alone[0], together[row])


def test_an_encoder_reads_every_piece_and_its_place(random_tokens: Callable[..., Tokens]) -> None:
    torch.manual_seed(0)
    body = Transformer(make_embedding(V, H), layers=1, ffn_dim=12, heads=2, dropout=0.0).double()
    side = random_tokens([6], V)
    unchanged = body(side)
    for position in range(6):
        changed = side.ids.clone()
        changed[0, position] = 4 if changed[0, position] != 4 else 5
        assert (body(Tokens.of(changed, side.mask, "en")) - unchanged).abs().max() > 1e-3
    swapped = side.ids[:, [1, 0, 2, 3, 4, 5]]
    assert not torch.equal(swapped, side.ids)
    assert (body(Tokens.of(swapped, side.mask, "en")) - unchanged).abs().max() > 1e-3


def test_attention_fusion_is_one_linear_of_hidden_and_latent(stirred: Stir) -> None:
    layer = stirred(DecoderLayer(H, L, 12, 2, dropout=0.0)).double()
    assert isinstance(layer, DecoderLayer)
    joint = nn.Linear(H + L, H, dtype=torch.float64)
    with torch.no_grad():
        joint.weight.copy_(torch.cat([layer.fuse_hidden.weight, layer.fuse_latent.weight], dim=1))
        joint.bias.copy_(layer.fuse_hidden.bias)
    x, z, layout = torch.randn(8, H, dtype=torch.float64), torch.randn(2, L, dtype=torch.float64), full(2, 4)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    read = layer.norm_attention(x + layer.attention(x, layout, causal))
    fused = layer.norm_fuse(read + joint(torch.cat([read, z.repeat_interleave(4, dim=0)], dim=-1)))
    expected = layer.norm_feed(fused + layer.feed(fused))
    assert_close(layer(x, z, layout, causal), expected)


def test_a_decoder_sees_its_past_and_nothing_else(
    decoder: TransformerDecoder, random_tokens: Callable[..., Tokens]
) -> None:
    target, z = random_tokens([6], V), torch.randn(1, L, dtype=torch.float64)
    scores = decoder("reconstruct", "en", z, target).logits()  # (6, V)
    for position in range(6):
        changed = target.ids.clone()
        changed[0, position] = 4 if changed[0, position] != 4 else 5
        moved = decoder("reconstruct", "en", z, Tokens.of(changed, target.mask, "en")).logits()
        later = position + 1  # the token at `position` is predicted there and read after it
        assert_close(moved[:later], scores[:later])
        assert ((moved - scores)[later:].abs().amax(-1) > 1e-6).all()
    assert ((decoder("reconstruct", "en", z + 1, target).logits() - scores).abs().amax(-1) > 1e-6).all()


def test_steps_with_a_cache_give_the_scores_of_teacher_forcing(
    decoder: TransformerDecoder, random_tokens: Callable[..., Tokens]
) -> None:
    target, z = random_tokens([9, 9, 9], V), torch.randn(3, L, dtype=torch.float64)
    expected = decoder("reconstruct", "en", z, target).logits().view(3, 9, V)
    tokens, past = torch.full((3, 1), EOS), decoder.start(z)
    for position in range(9):
        scores = decoder.step(tokens, past)  # (3, 1, V)
        assert_close(scores[:, 0], expected[:, position])
        tokens = target.ids[:, position : position + 1]


def test_a_tag_is_a_part_of_the_latent(decoder: TransformerDecoder, random_tokens: Callable[..., Tokens]) -> None:
    one, other = (TaggedDecoder(decoder, decoder.layer, 2).double() for _ in range(2))
    target, z = random_tokens([9, 4], V), torch.randn(2, L - 2, dtype=torch.float64)
    expected = decoder("reconstruct", "en", torch.cat([z, one.tag.expand(2, -1)], dim=1), target).logits()
    assert_close(one("reconstruct", "en", z, target).logits(), expected)
    assert not torch.allclose(other("reconstruct", "en", z, target).logits(), expected)
    scores = one.step(torch.full((2, 1), EOS), one.start(z))[:, 0]
    assert_close(scores, expected[[0, 9]])
    assert one.decoder is other.decoder


def test_hypotheses_follow_their_parents_and_kept_sentences(
    decoder: TransformerDecoder, random_tokens: Callable[..., Tokens]
) -> None:
    """Two sentences, three hypotheses each; after two steps they continue others, after three one sentence goes on."""
    draw = torch.Generator().manual_seed(3)
    read, z = torch.randint(4, V, (3, 2, 3), generator=draw), torch.randn(2, L, dtype=torch.float64)
    parents = torch.tensor([[2, 0, 0], [1, 1, 2]])
    past = decoder.start(z)
    decoder.step(torch.full((2, 1), EOS), past)
    past.reorder(torch.zeros(2, 3, dtype=torch.long))  # all three branch from the one start
    decoder.step(read[0], past)
    past.reorder(parents)
    before = decoder.step(read[1], past)
    past.select(torch.tensor([1]))
    after = decoder.step(read[2, 1:], past)

    def scored(sentence: int, tokens: list[int]) -> torch.Tensor:
        """Of the token after these, recomputed from nothing."""
        target = Tokens.pad([[*tokens, EOS]], "en")
        return decoder("reconstruct", "en", z[sentence : sentence + 1], target).logits()[-1]

    for sentence in range(2):
        for hypothesis in range(3):
            parent = int(parents[sentence, hypothesis])
            tokens = [int(read[0, sentence, parent]), int(read[1, sentence, hypothesis])]
            expected = scored(sentence, tokens)
            assert_close(before[sentence, hypothesis], expected)
            if sentence == 1:
                expected = scored(1, [*tokens, int(read[2, 1, hypothesis])])
                assert_close(after[0, hypothesis], expected)


def test_a_sentence_costs_the_same_nats_in_any_batch(
    decoder: TransformerDecoder, random_tokens: Callable[..., Tokens]
) -> None:
    lengths = [4, 12, 1, 7]
    target, z = random_tokens(lengths, V), torch.randn(4, L, dtype=torch.float64)
    _, together = decoder("reconstruct", "en", z, target).nll()
    for row, length in enumerate(lengths):
        alone = Tokens.of(target.ids[row : row + 1, :length], target.mask[row : row + 1, :length], "en")
        _, nats = decoder("reconstruct", "en", z[row : row + 1], alone).nll()
        assert_close(nats[0], together[row])


def test_word_dropout_hides_past_pieces_in_training_only(stirred: Stir, random_tokens: Callable[..., Tokens]) -> None:
    """With all words hidden but by chance none, a decoder can't tell two pasts apart."""
    table = make_embedding(V, H)
    decoder = stirred(TransformerDecoder(table, TiedOutput(table, L), L, 1, 12, 2, dropout=0.0, word_dropout=1 - 1e-7))
    z, one, two = torch.randn(1, L), random_tokens([8], V, seed=1), random_tokens([8], V, seed=2)
    decoder.train()
    assert_close(decoder("reconstruct", "en", z, one).logits(), decoder("reconstruct", "en", z, two).logits())
    decoder.eval()
    assert (decoder("reconstruct", "en", z, one).logits() - decoder("reconstruct", "en", z, two).logits())[
        1:
    ].abs().max() > 0.1


def test_the_row_of_padding_starts_at_zero() -> None:
    table = make_embedding(200, 64)
    assert not table.weight[PAD].any()
    assert abs(table.weight[4:].std().item() * 64**0.5 - 1) < 0.05


def test_attention_is_torchs_own_product() -> None:
    attention = SelfAttention(H, 2).double()
    x = torch.randn(10, H, dtype=torch.float64)
    q, k, v = (part.view(2, 5, 2, H // 2).transpose(1, 2) for part in attention.qkv(x).chunk(3, dim=-1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(10, H)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    assert_close(attention(x, full(2, 5), causal), attention.out(mixed))


@pytest.mark.parametrize("masked", [None, (2, 1, 1, 50), (1, 1, 50, 50), (2, 1, 50, 50)])
def test_attention_in_blocks_is_that_of_the_whole(
    masked: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v = torch.randn(3, 2, 3, 50, 8, dtype=torch.float64)
    allowed = None if masked is None else torch.rand(masked) < 0.7
    monkeypatch.setattr(layers, "BLOCK_SCORES", 2 * 3 * 50 * 7)  # seven queries at once
    assert [block.stop - block.start for block in layers.blocks_of(q, k)] == [7] * 8
    assert_close(layers.attend(q, k, v, allowed), F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


def test_softmax_is_torchs_even_for_huge_and_barred_scores() -> None:
    scores = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    given = (1e4 * scores).masked_fill(torch.arange(7) > 4, -torch.inf)
    weights = torch.randn(3, 5, 7, dtype=torch.float64)
    for one, other, factor in ((softmax(given), given.softmax(-1), 1e4), (softmax(scores), scores.softmax(-1), 1)):
        assert_close(one, other)
        slope, expected = (torch.autograd.grad((y * weights).sum(), scores, retain_graph=True)[0] for y in (one, other))
        assert_close(slope, expected, scale=factor)
    assert softmax(torch.zeros(2, 3, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize(("width", "heads"), [(8, 3), (8, 0)])
def test_heads_share_the_width_evenly(width: int, heads: int) -> None:
    with pytest.raises(BgtError, match=f"width {width} .* {heads} heads"):
        SelfAttention(width, heads)
