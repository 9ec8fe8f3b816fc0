"""The decoder that attends to a source: against torch's, against itself without a cache, and searched exhaustively."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.generation.options import Beam, Sample
from bgt_core.generation.search import beam, n_best, sample, write
from bgt_core.nets.attention_decoder import AttentionDecoder, EncoderStates
from bgt_core.nets.layers import make_embedding, shift_right, sinusoids
from bgt_core.nets.output import PlainOutput
from tests.close import BFLOAT16, assert_close

H, HEADS, INNER = 12, 3, 20
Draw = Callable[..., Tokens]


def made(vocab_size: int, seed: int = 0, layers: int = 2, spread: float = 1.0) -> AttentionDecoder:
    """In float64; every parameter away from where it starts, and scores `spread` times as far apart."""
    torch.manual_seed(seed)
    decoder = AttentionDecoder(
        make_embedding(vocab_size, H), PlainOutput.untied(vocab_size, H), layers, INNER, HEADS, dropout=0.1
    )
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        decoder.layer.matrix.weight *= spread  # type: ignore[attr-defined]
    return decoder.double().eval()


def sources(lengths: list[int], seed: int = 5) -> EncoderStates:
    """Random states of sentences of these lengths."""
    side = Tokens.pad([[4] * (length - 1) + [EOS] for length in lengths], "fr")
    generator = torch.Generator().manual_seed(seed)
    return EncoderStates(torch.randn(sum(lengths), H, dtype=torch.float64, generator=generator), side)


def only(source: EncoderStates, row: int) -> EncoderStates:
    """One of the sentences, alone."""
    lengths = source.side.mask.sum(1).tolist()
    side = Tokens.pad([source.side.ids[row, : lengths[row]].tolist()], "fr")
    return EncoderStates(source.states.split(lengths)[row], side)


def torchs(decoder: AttentionDecoder) -> nn.TransformerDecoder:
    """torch's decoder with the same weights."""
    layer = nn.TransformerDecoderLayer(H, HEADS, INNER, dropout=0.0, batch_first=True, dtype=torch.float64)
    twin = nn.TransformerDecoder(layer, len(decoder.layers)).eval()
    with torch.no_grad():
        for ours, theirs in zip(decoder.layers, twin.layers, strict=True):
            pairs = [
                (theirs.self_attn.in_proj_weight, ours.attention.qkv.weight),
                (theirs.self_attn.in_proj_bias, ours.attention.qkv.bias),
                (theirs.multihead_attn.in_proj_weight, torch.cat([ours.cross.q.weight, ours.cross.kv.weight])),
                (theirs.multihead_attn.in_proj_bias, torch.cat([ours.cross.q.bias, ours.cross.kv.bias])),
            ]
            modules = [
                (theirs.self_attn.out_proj, ours.attention.out),
                (theirs.multihead_attn.out_proj, ours.cross.out),
                (theirs.linear1, ours.feed[0]),
                (theirs.linear2, ours.feed[2]),
                (theirs.norm1, ours.norm_attention),
                (theirs.norm2, ours.norm_cross),
                (theirs.norm3, ours.norm_feed),
            ]
            pairs += [(getattr(a, name), getattr(b, name)) for a, b in modules for name in ("weight", "bias")]
            for to, value in pairs:
                to.copy_(value)
    return twin


@pytest.mark.parametrize(("target_lengths", "source_lengths"), [([5, 5, 5], [4, 4, 4]), ([7, 2, 4, 9], [3, 8, 1, 5])])
def test_it_is_torchs_decoder(target_lengths: list[int], source_lengths: list[int], random_tokens: Draw) -> None:
    """Scores, and gradients of the states and of every weight; nothing padded, and both sides padded."""
    decoder, target, source = made(30), random_tokens(target_lengths, 30), sources(source_lengths)
    source.states.requires_grad_()
    scores = decoder("translate", "en", source, target).logits()

    twin = torchs(decoder)
    memory = source.states.new_zeros(*source.side.ids.shape, H)
    memory[source.side.mask] = source.states.detach()
    memory.requires_grad_()
    ids = shift_right(target.ids)
    x = decoder.words.table.weight.detach()[ids] * H**0.5 + sinusoids(0, ids.shape[1], memory)
    features = twin(
        x,
        memory,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(ids.shape[1], dtype=torch.float64),
        memory_key_padding_mask=torch.zeros_like(source.side.mask, dtype=torch.float64).masked_fill(
            ~source.side.mask, -torch.inf
        ),
    )
    expected = features[target.mask] @ decoder.layer.matrix.weight.detach().T  # type: ignore[attr-defined]
    assert_close(scores, expected)

    weights = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    (scores * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_close(source.states.grad, memory.grad[source.side.mask])
    for ours, theirs in zip(decoder.layers, twin.layers, strict=True):
        both = torch.cat([ours.cross.q.weight.grad, ours.cross.kv.weight.grad])
        assert_close(both, theirs.multihead_attn.in_proj_weight.grad)
        assert_close(ours.feed[0].weight.grad, theirs.linear1.weight.grad)


def test_padding_of_either_side_changes_nothing(random_tokens: Draw) -> None:
    decoder, target, source = made(30), random_tokens([7, 2, 4], 30), sources([3, 8, 1])
    _, nats = decoder("translate", "en", source, target).nll()
    for row, length in enumerate([7, 2, 4]):
        alone = Tokens.pad([target.ids[row, :length].tolist()], "en")
        _, expected = decoder("translate", "en", only(source, row), alone).nll()
        assert_close(nats[row : row + 1], expected)


def test_a_search_reads_what_training_reads(random_tokens: Draw) -> None:
    """Token by token with a cache, over two hypotheses that change places, while a sentence leaves: the same scores."""
    decoder, source = made(30), sources([3, 8, 1])
    texts = random_tokens([6] * 6, 30).ids.view(3, 2, 6)  # what two hypotheses of each sentence write
    expected = torch.stack(
        [
            decoder("translate", "en", only(source, row), Tokens.pad([texts[row, text].tolist()], "en")).logits()
            for row in range(3)
            for text in range(2)
        ]
    ).view(3, 2, 6, 30)
    rows, order = torch.arange(3), torch.tensor([0])  # sentences that stay; which text each hypothesis writes
    state, last = decoder.start(source), torch.full((3, 1), EOS)
    for position in range(6):
        scores = decoder.step(last, state)
        assert_close(scores, expected[rows][:, order, position])
        order, parents = (order.flip(0), [1, 0]) if position else (torch.tensor([0, 1]), [0, 0])
        state.reorder(torch.tensor([parents] * len(rows)))
        if position == 2:
            state.select(torch.tensor([0, 2]))
            rows = rows[[0, 2]]
        last = texts[rows][:, order, position]


def log_chances(decoder: AttentionDecoder, source: EncoderStates, past: list[int]) -> Tensor:
    """Of the token after `past`, by teacher forcing: no cache, no step; what no search writes is left out."""
    target = Tokens.of(torch.tensor([[*past, EOS]]), torch.ones(1, len(past) + 1, dtype=torch.bool), "en")
    scores = decoder("translate", "en", source, target).logits()[-1].detach()
    scores[[PAD, UNK, BOS]] = -torch.inf
    if not past:
        scores[EOS] = -torch.inf
    return scores.log_softmax(-1)


def all_sentences(decoder: AttentionDecoder, source: EncoderStates, longest: int) -> list[tuple[float, list[int]]]:
    """Every sentence of at most that many tokens with its mean log-probability, EOS counted; the best first."""
    words, scored = range(4, decoder.words.table.num_embeddings), []
    for length in range(1, longest + 1):
        for sentence in itertools.product(words, repeat=length):
            tokens = [*sentence, EOS] if length < longest else list(sentence)
            parts = [float(log_chances(decoder, source, tokens[:at])[token]) for at, token in enumerate(tokens)]
            scored.append((sum(parts) / len(tokens), list(sentence)))
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_wide_beam_finds_the_best_sentences_of_all(seed: int) -> None:
    """3 words, at most 3 tokens: a beam of 40 drops none of the 3 + 9 + 27 sentences."""
    decoder, source = made(7, seed, layers=1, spread=4.0), sources([3, 6, 1])
    for row, written in enumerate(n_best(decoder, source, Beam(40), 99, max_length=3)):
        expected = all_sentences(decoder, only(source, row), 3)
        assert len(written) == len(expected) == 39
        assert [best.tokens for best in written] == [tokens for _, tokens in expected]
        assert [best.mean for best in written] == pytest.approx([mean for mean, _ in expected], rel=1e-4)
    best = beam(decoder, source, Beam(40), 3)
    assert best == [written[0] for written in n_best(decoder, source, Beam(40), 5, 3)]
    assert len({tuple(each.tokens) for each in best}) > 1  # the source decides


def test_the_n_best_are_as_many_as_a_beam_holds() -> None:
    decoder, source = made(7, layers=1), sources([3, 6])
    assert [len(written) for written in n_best(decoder, source, Beam(4), 9, max_length=6)] == [4, 4]
    assert [len(written) for written in n_best(decoder, source, Beam(4), 2, max_length=6)] == [2, 2]
    assert [len(written) for written in n_best(decoder, source, Beam(9), 9, max_length=1)] == [
        3,
        3,
    ]  # no more
    for written in n_best(decoder, source, Beam(9), 9, max_length=2):
        means = [best.mean for best in written]
        assert means == sorted(means, reverse=True)
        assert len({tuple(best.tokens) for best in written}) == 9


def test_sentences_of_a_batch_do_not_touch_each_other() -> None:
    """Some end while others go on, and the sources are of different lengths."""
    decoder, source = made(12, seed=3, spread=3.0), sources([3, 8, 1, 5, 2, 6])
    with torch.no_grad():
        decoder.layer.matrix.weight[EOS] *= 3  # type: ignore[attr-defined]
    together = n_best(decoder, source, Beam(4), 3, max_length=9)
    for row, of_row in enumerate(together):
        (alone,) = n_best(decoder, only(source, row), Beam(4), 3, max_length=9)
        assert [best.tokens for best in of_row] == [best.tokens for best in alone]
        assert [best.mean for best in of_row] == pytest.approx([best.mean for best in alone], rel=1e-5)
    assert len({len(best.tokens) for (best, *_) in together}) > 1


def test_it_is_searched_and_drawn_from_like_any_decoder() -> None:
    decoder, source = made(12, seed=3), sources([3, 8])
    generator = torch.Generator().manual_seed(0)
    assert write(decoder, source, Beam(4), 6, generator) == [best.tokens for best in beam(decoder, source, Beam(4), 6)]
    drawn = sample(decoder, source, Sample(), 6, generator)
    assert len(drawn) == 2 and all(drawn)


def test_half_precision_changes_little(random_tokens: Draw) -> None:
    """Loss and gradients of bf16 products, as training on a CPU makes them, beside exact ones."""
    target, results = random_tokens([7, 2, 4, 9], 30), []
    for on in (False, True):
        decoder, source = made(30).float().train(False), sources([3, 8, 1, 5])
        states = source.states.float().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            loss, nats = decoder("translate", "en", EncoderStates(states, source.side), target).nll(0.1)
        loss.backward()
        results.append((nats, states.grad))
    (exact_nats, exact_grad), (nats, grad) = results
    assert_close(nats, exact_nats, BFLOAT16)
    assert not torch.equal(nats, exact_nats)
    assert torch.cosine_similarity(grad.flatten(), exact_grad.flatten(), dim=0) > 0.99
