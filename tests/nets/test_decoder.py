"""Decoders that generate from a latent equal simple ones, which loop over sentences and steps, and multiply the vector
[x ; latent] by one matrix. The decoder that attends to a source sentence equals torch's."""

from collections.abc import Callable
from itertools import chain, combinations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.decoder import AttentionDecoder, EncoderStates, TransformerDecoder
from bgt_core.nets.layers import make_embedding, shift_right, sinusoids
from bgt_core.nets.lstm import LSTMDecoder
from bgt_core.nets.output import PlainOutput, TiedOutput, UntiedOutput
from bgt_core.recipes.bgt import FUSIONS, Seq2SeqConfig
from tests.close import assert_close
from tests.nets.test_layers import copy_layer

V, H, L = 19, 8, 5
LENGTHS = [4, 9, 1, 6]


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)))


CASES = [(kind, fuse, share) for kind in FUSIONS for fuse in subsets(FUSIONS[kind]) for share in (False, True)]
every_fusion = pytest.mark.parametrize(
    ("kind", "fuse", "share"), CASES, ids=[f"{kind}-{'+'.join(fuse)}-{share}" for kind, fuse, share in CASES]
)
Stir = Callable[[nn.Module], nn.Module]


def made(
    kind: str, fuse: tuple[str, ...], share: bool, stirred: Stir, layers: int = 2
) -> LSTMDecoder | TransformerDecoder:
    config = Seq2SeqConfig(
        body=kind, fuse=fuse, tie_embeddings=share, d_model=H, decoder_layers=layers, ffn_dim=12, heads=2, dropout=0.2
    )
    torch.manual_seed(0)
    _, decoder = config.nets(V)
    return stirred(decoder(L)).double().eval()


def joint(x: Tensor, z: Tensor, on_x: nn.Linear, on_z: nn.Linear) -> Tensor:
    """Multiply the concatenation [x ; z] by one matrix, and add the bias."""
    return torch.cat([on_x.weight, on_z.weight], dim=1) @ torch.cat([x, z]) + on_x.bias


def scores(layer: nn.Module, h: Tensor, z: Tensor) -> Tensor:
    """Compute the logits (V,) of all tokens from the features h (H,) and the latent z (L,)."""
    if isinstance(layer, UntiedOutput):
        return torch.cat([layer.latent.weight, layer.hidden.weight], dim=1) @ torch.cat([z, h])  # BGT paper: [z ; h]
    if isinstance(layer, TiedOutput):
        return layer.table.weight @ (h + layer.project.weight @ z)
    assert isinstance(layer, PlainOutput)
    return layer.matrix.weight @ h


def naive_lstm(decoder: LSTMDecoder, tokens: list[int], z: Tensor, fuse: tuple[str, ...]) -> list[Tensor]:
    """Compute the logits of an LSTM decoder step by step, by the equations of the gates."""
    cells = [torch.zeros(H, dtype=z.dtype) for _ in range(decoder.lstm.num_layers)]
    hidden = [torch.zeros_like(cell) for cell in cells]
    if "hidden" in fuse:
        start = decoder.first_hidden
        hidden = list((start.weight @ z + start.bias).split(H))
    outputs = []
    for token in tokens:
        x = decoder.table.weight[token]
        if "word" in fuse:
            x = torch.cat([x, z])
        for layer in range(len(cells)):
            parts = [
                getattr(decoder.lstm, f"{part}_{way}_l{layer}") for part in ("weight", "bias") for way in ("ih", "hh")
            ]
            gates = parts[0] @ x + parts[2] + parts[1] @ hidden[layer] + parts[3]
            enter, forget, new, leave = gates.split(H)
            cells[layer] = forget.sigmoid() * cells[layer] + enter.sigmoid() * new.tanh()
            x = hidden[layer] = leave.sigmoid() * cells[layer].tanh()
        h = torch.tanh(joint(x, z, decoder.fuse_hidden, decoder.fuse_latent)) if "attention" in fuse else x
        outputs.append(scores(decoder.layer, h, z))
    return outputs


def naive_transformer(decoder: TransformerDecoder, tokens: list[int], z: Tensor, fuse: tuple[str, ...]) -> list[Tensor]:
    """Compute the logits of a Transformer decoder, with a loop over tokens and attention heads."""
    places = sinusoids(0, len(tokens), decoder.words.table.weight)
    xs = [decoder.words.table.weight[token] * H**0.5 + place for token, place in zip(tokens, places, strict=True)]
    if "word" in fuse:
        matrix = torch.cat([torch.eye(H, dtype=z.dtype), decoder.fuse_word.weight], dim=1)  # multiplies [word ; z]
        xs = [matrix @ torch.cat([x, z]) for x in xs]
    for layer in decoder.layers:
        heads = layer.attention.heads
        qkv = [layer.attention.qkv(x).view(3, heads, -1) for x in xs]
        mixed = []
        for here in range(len(xs)):
            parts = []
            for head in range(heads):
                q = qkv[here][0, head]
                weights = torch.stack([q @ qkv[past][1, head] / len(q) ** 0.5 for past in range(here + 1)]).softmax(0)
                parts.append(sum(w * qkv[past][2, head] for past, w in enumerate(weights)))
            mixed.append(layer.attention.out(torch.cat(parts)))
        xs = [layer.norm_attention(x + each) for x, each in zip(xs, mixed, strict=True)]
        if "attention" in fuse:
            xs = [layer.norm_fuse(x + joint(x, z, layer.fuse_hidden, layer.fuse_latent)) for x in xs]
        xs = [layer.norm_feed(x + layer.feed(x)) for x in xs]
    return [scores(decoder.layer, x, z) for x in xs]


@every_fusion
def test_scores_and_nats_are_those_of_the_straight_form(
    kind: str, fuse: tuple[str, ...], share: bool, stirred: Stir, random_tokens: Callable[..., Tokens]
) -> None:
    decoder, target = made(kind, fuse, share, stirred), random_tokens(LENGTHS, V)
    z = torch.randn(len(LENGTHS), L, dtype=torch.float64)
    naive = naive_lstm if kind == "lstm" else naive_transformer
    expected = []
    for row, length in enumerate(LENGTHS):
        tokens = [EOS, *target.ids[row, : length - 1].tolist()]
        expected.append(torch.stack(naive(decoder, tokens, z[row], fuse)))  # (T, V), without padding
    prediction = decoder("translate", "en", z, target)
    assert_close(prediction.logits(), torch.cat(expected))
    loss, nats = prediction.nll(0.1)
    gold = [target.ids[row, :length] for row, length in enumerate(LENGTHS)]
    plain, smooth = (
        [cross_entropy(*each, reduction="sum", label_smoothing=share) for each in zip(expected, gold, strict=True)]
        for share in (0.0, 0.1)
    )
    assert_close(nats, torch.stack(plain))
    assert_close(loss, sum(smooth))


@every_fusion
def test_one_step_at_a_time_gives_the_scores_of_teacher_forcing(
    kind: str, fuse: tuple[str, ...], share: bool, stirred: Stir, random_tokens: Callable[..., Tokens]
) -> None:
    """Logits step by step equal teacher forcing. Two sentences have three hypotheses each; the first one ends early."""
    decoder, z = made(kind, fuse, share, stirred), torch.randn(2, L, dtype=torch.float64)
    draw = torch.Generator().manual_seed(3)
    read, parents = torch.randint(4, V, (3, 2, 3), generator=draw), torch.tensor([[2, 0, 0], [1, 1, 2]])
    past = decoder.start(z)
    first = decoder.step(torch.full((2, 1), EOS), past)
    past.reorder(torch.zeros(2, 3, dtype=torch.long))
    decoder.step(read[0], past)
    past.reorder(parents)
    before = decoder.step(read[1], past)
    past.select(torch.tensor([1]))
    after = decoder.step(read[2, 1:], past)
    assert past.position == 4

    def scored(sentence: int, tokens: list[int]) -> Tensor:
        """Compute by teacher forcing the logits of the token after `tokens`."""
        return decoder("reconstruct", "en", z[sentence : sentence + 1], Tokens.pad([[*tokens, EOS]], "en")).logits()[-1]

    for sentence in range(2):
        assert_close(first[sentence, 0], scored(sentence, []))
        for hypothesis, parent in enumerate(parents[sentence].tolist()):
            tokens = [int(read[0, sentence, parent]), int(read[1, sentence, hypothesis])]
            assert_close(before[sentence, hypothesis], scored(sentence, tokens))
            if sentence == 1:
                tokens.append(int(read[2, 1, hypothesis]))
                assert_close(after[0, hypothesis], scored(1, tokens))


@pytest.mark.parametrize(
    ("kind", "fuse", "layers", "message"),
    [
        ("lstm", (), 2, "for lstm choose one or more of word"),
        ("transformer", ("hidden",), 2, "for transformer choose one or more of word"),
        ("gru", ("logit",), 2, "body 'gru': choose from transformer, lstm"),
        ("lstm", ("logit",), 0, "decoder_layers 0"),
    ],
)
def test_an_unknown_fusion_or_body_or_depth_is_refused(
    kind: str, fuse: tuple[str, ...], layers: int, message: str, stirred: Stir
) -> None:
    with pytest.raises(UsageError, match=message):
        made(kind, fuse, False, stirred, layers)


def test_word_dropout_hides_past_pieces_in_training_only(stirred: Stir, random_tokens: Callable[..., Tokens]) -> None:
    """If word dropout hides all previous tokens, they must not change the logits."""
    table = make_embedding(V, H)
    decoder = stirred(TransformerDecoder(table, TiedOutput(table, L), L, 1, 12, 2, dropout=0.0, word_dropout=1 - 1e-7))
    z, one, two = torch.randn(1, L), random_tokens([8], V, seed=1), random_tokens([8], V, seed=2)
    decoder.train()
    assert_close(decoder("reconstruct", "en", z, one).logits(), decoder("reconstruct", "en", z, two).logits())
    decoder.eval()
    assert (decoder("reconstruct", "en", z, one).logits() - decoder("reconstruct", "en", z, two).logits())[
        1:
    ].abs().max() > 0.1


WIDTH, HEADS, INNER = 12, 3, 20
Draw = Callable[..., Tokens]


@pytest.fixture
def attending(stirred: Stir) -> nn.Module:
    """Return a float64 decoder with two layers, a vocabulary of 30, and noise in all parameters."""
    torch.manual_seed(0)
    layer = PlainOutput.untied(30, WIDTH)
    return stirred(AttentionDecoder(make_embedding(30, WIDTH), layer, 2, INNER, HEADS, dropout=0.1)).double().eval()


def sources(lengths: list[int]) -> EncoderStates:
    """Return random encoder states of source sentences with these lengths."""
    side = Tokens.pad([[4] * (length - 1) + [EOS] for length in lengths], "fr")
    generator = torch.Generator().manual_seed(5)
    return EncoderStates(torch.randn(sum(lengths), WIDTH, dtype=torch.float64, generator=generator), side)


def torchs(decoder: AttentionDecoder) -> nn.TransformerDecoder:
    """Return torch's Transformer decoder with the weights of our decoder."""
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, dropout=0.0, batch_first=True, dtype=torch.float64)
    twin = nn.TransformerDecoder(layer, len(decoder.layers)).eval()
    for ours, theirs in zip(decoder.layers, twin.layers, strict=True):
        copy_layer(theirs, ours, ours.norm_attention, ours.norm_cross, ours.norm_feed)
        theirs.multihead_attn.out_proj.load_state_dict(ours.cross.out.state_dict())
        for name in ("weight", "bias"):
            both = torch.cat([getattr(part, name).detach() for part in (ours.cross.q, ours.cross.kv)])
            getattr(theirs.multihead_attn, f"in_proj_{name}").data.copy_(both)
    return twin


@pytest.mark.parametrize(("target_lengths", "source_lengths"), [([5, 5, 5], [4, 4, 4]), ([7, 2, 4, 9], [3, 8, 1, 5])])
def test_attention_is_torchs(
    attending: AttentionDecoder, target_lengths: list[int], source_lengths: list[int], random_tokens: Draw
) -> None:
    """Logits and gradients equal those of torch's decoder, without padding (case 1) and with padding (case 2)."""
    decoder, target, source = attending, random_tokens(target_lengths, 30), sources(source_lengths)
    source.states.requires_grad_()
    scores = decoder("translate", "en", source, target).logits()

    twin = torchs(decoder)
    memory = source.states.new_zeros(*source.side.ids.shape, WIDTH)
    memory[source.side.mask] = source.states.detach()
    memory.requires_grad_()
    ids = shift_right(target.ids)
    x = decoder.words.table.weight.detach()[ids] * WIDTH**0.5 + sinusoids(0, ids.shape[1], memory)
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


def test_a_search_computes_the_scores_of_training(attending: AttentionDecoder, random_tokens: Draw) -> None:
    """Two hypotheses per sentence are scored token by token. They change places each time; one sentence is dropped."""
    decoder, lengths, source = attending, [3, 8, 1], sources([3, 8, 1])
    texts = random_tokens([6] * 6, 30).ids.view(3, 2, 6)  # (sentence, hypothesis, position)
    alone = [
        EncoderStates(states, Tokens.pad([source.side.ids[row, : lengths[row]].tolist()], "fr"))
        for row, states in enumerate(source.states.split(lengths))
    ]
    expected = torch.stack(
        [
            decoder("translate", "en", alone[row], Tokens.pad([text.tolist()], "en")).logits()
            for row in range(3)
            for text in texts[row]
        ]
    ).view(3, 2, 6, 30)
    rows, order = torch.arange(3), torch.tensor([0])  # `rows`: the remaining sentences; `order`: each hypothesis's text
    state, last = decoder.start(source), torch.full((3, 1), EOS)
    for position in range(6):
        assert_close(decoder.step(last, state), expected[rows][:, order, position])
        order, parents = (order.flip(0), [1, 0]) if position else (torch.tensor([0, 1]), [0, 0])
        state.reorder(torch.tensor([parents] * len(rows)))
        if position == 2:
            state.select(torch.tensor([0, 2]))
            rows = rows[[0, 2]]
        last = texts[rows][:, order, position]
