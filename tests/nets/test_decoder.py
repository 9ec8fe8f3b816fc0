"""Every place where a latent enters a decoder, against a second implementation: a loop over sentences and steps with
concatenated latents and one matrix a product. And what search and padding must not change."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import pytest
import torch
from torch import Tensor, nn

from bgt_core.contracts import EOS, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.layers import sinusoids
from bgt_core.nets.lstm_decoder import LSTMDecoder
from bgt_core.nets.output import PlainOutput, TiedOutput, UntiedOutput
from bgt_core.recipes.parts import FUSIONS, builders
from tests.close import assert_close

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
    sizes = {"width": H, "encoder_layers": 1, "decoder_layers": layers, "ffn_dim": 12, "heads": 2, "dropout": 0.2}
    torch.manual_seed(0)
    _, decoder = builders(V, **sizes, tie_embeddings=share, fuse=fuse, kind=kind)
    return stirred(decoder(L)).double().eval()


def joint(x: Tensor, z: Tensor, on_x: nn.Linear, on_z: nn.Linear) -> Tensor:
    """One matrix times [x ; z]."""
    return torch.cat([on_x.weight, on_z.weight], dim=1) @ torch.cat([x, z]) + on_x.bias


def scores(layer: nn.Module, h: Tensor, z: Tensor) -> Tensor:
    """(H,), (L,) -> (V,)."""
    if isinstance(layer, UntiedOutput):
        return torch.cat([layer.latent.weight, layer.hidden.weight], dim=1) @ torch.cat([z, h])  # [z ; h], as published
    if isinstance(layer, TiedOutput):
        return layer.table.weight @ (h + layer.project.weight @ z)
    assert isinstance(layer, PlainOutput)
    return layer.matrix.weight @ h


def naive_lstm(decoder: LSTMDecoder, tokens: list[int], z: Tensor, fuse: tuple[str, ...]) -> list[Tensor]:
    """The published gates, step by step."""
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
    """Each position reads those up to it, a head at a time."""
    places = sinusoids(0, len(tokens), decoder.words.table.weight)
    xs = [decoder.words.table.weight[token] * H**0.5 + place for token, place in zip(tokens, places, strict=True)]
    if "word" in fuse:
        matrix = torch.cat([torch.eye(H, dtype=z.dtype), decoder.fuse_word.weight], dim=1)  # of [word ; z]
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
        expected.append(torch.stack(naive(decoder, tokens, z[row], fuse)))  # (T, V), no padding
    prediction = decoder("translate", "en", z, target)
    assert_close(prediction.logits(), torch.cat(expected))
    loss, nats = prediction.nll(0.1)
    gold = [target.ids[row, :length] for row, length in enumerate(LENGTHS)]
    plain = [nn.functional.cross_entropy(*each, reduction="sum") for each in zip(expected, gold, strict=True)]
    smooth = [
        nn.functional.cross_entropy(*each, reduction="sum", label_smoothing=0.1)
        for each in zip(expected, gold, strict=True)
    ]
    assert_close(nats, torch.stack(plain))
    assert_close(loss, sum(smooth))


@every_fusion
def test_every_parameter_learns_and_every_latent_unit_is_read(
    kind: str, fuse: tuple[str, ...], share: bool, stirred: Stir, random_tokens: Callable[..., Tokens]
) -> None:
    decoder, z = made(kind, fuse, share, stirred), torch.randn(4, L, dtype=torch.float64, requires_grad=True)
    decoder("reconstruct", "en", z, random_tokens(LENGTHS, V)).nll()[0].backward()
    assert z.grad.all()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


@every_fusion
def test_one_step_at_a_time_gives_the_scores_of_teacher_forcing(
    kind: str, fuse: tuple[str, ...], share: bool, stirred: Stir, random_tokens: Callable[..., Tokens]
) -> None:
    """Two sentences, three hypotheses each; after two steps they continue others, then one sentence goes on."""
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
        """Of the token after these, by teacher forcing."""
        return decoder("reconstruct", "en", z[sentence : sentence + 1], Tokens.pad([[*tokens, EOS]], "en")).logits()[-1]

    for sentence in range(2):
        assert_close(first[sentence, 0], scored(sentence, []))
        for hypothesis, parent in enumerate(parents[sentence].tolist()):
            tokens = [int(read[0, sentence, parent]), int(read[1, sentence, hypothesis])]
            assert_close(before[sentence, hypothesis], scored(sentence, tokens))
            if sentence == 1:
                tokens.append(int(read[2, 1, hypothesis]))
                assert_close(after[0, hypothesis], scored(1, tokens))


@pytest.mark.parametrize(("kind", "fuse"), [("lstm", ()), ("transformer", ("hidden",)), ("lstm", ("word", "logits"))])
def test_a_fusion_that_there_is_not_is_refused(kind: str, fuse: tuple[str, ...], stirred: Stir) -> None:
    with pytest.raises(BgtError, match=f"for {kind} choose one or more of word") as error:
        made(kind, fuse, False, stirred)
    assert error.value.exit_code == 2


def test_a_body_or_a_depth_that_there_is_not_is_refused(stirred: Stir) -> None:
    with pytest.raises(BgtError, match="body 'gru': choose from transformer, lstm"):
        made("gru", ("logit",), False, stirred)
    with pytest.raises(BgtError, match="decoder_layers 0"):
        made("lstm", ("logit",), False, stirred, layers=0)
