"""Compare our beam search, including encoding, with `generate` of `transformers` for an encoder-decoder of equal size.

Both sides have the same layer sizes, vocabulary, random weights, sources in random order, and 5 beams. An output has
the same length on both sides, because EOS is forbidden before this length and forced at it; the median is 12 tokens.
The peer is MarianMT, which encodes each source once and attends to it. Its batches have 64 sentences, the fastest size
between 16 and 256. Our model is the recipe `bgt`, which encodes each source twice, for two latents, or `bgt-bound`,
whose decoder attends to memory slots. If lengths differ, our search drops finished sentences, while the peer computes
them to the end of the batch. Only the first of `SIZES` has a high target. The other sizes help to explain its speed.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LogitsProcessor, LogitsProcessorList, MarianConfig, MarianMTModel

import bgt_core
from bench.measure import DTYPES, Measurement, clock_of, compare, product_rate, turns
from bench.workload import SizedTokenizer
from bgt_core import recipes
from bgt_core.backend import autocast
from bgt_core.contracts import EOS, PAD, Tokens
from bgt_core.embedder import Embedder
from bgt_core.generation.generate import generate
from bgt_core.generation.options import Beam
from bgt_core.grammar import pairs
from bgt_core.nets.output import Scorer

BEAM, BATCH = 5, 64


@dataclass(frozen=True)
class Size:
    """The sizes of a model, and the amount of text that it generates per round of measurement."""

    name: str
    arguments: dict[str, int]
    vocab: int
    sentences: int
    tokens: int | None  # number of tokens in every output; None for as many as the source has
    target: str
    recipe: str = "bgt"


BOUND = "bgt-bound"
SMALL = {"model.d_model": 256, "model.encoder_layers": 3, "model.ffn_dim": 256}
SIZES = (
    Size("256 sentences of 4-30 tokens, d=256, 3+1 layers, 8k", SMALL, 8_000, 256, None, ">= 3"),
    Size("128 sentences of 12 tokens each, d=256, 3+1 layers, 8k", SMALL, 8_000, 128, 12, ">= 1"),
    Size("1 sentence of 12 tokens, d=256, 3+1 layers, 8k", SMALL, 8_000, 1, 12, ">= 1"),
    Size("256 sentences of 4-30 tokens, d=256, 3+2 layers, 24 memory slots, 8k", {}, 8_000, 256, None, ">= 1", BOUND),
    Size("32 sentences of 4-30 tokens, d=1024, 5+1 layers, 20k", {}, 20_000, 32, None, ">= 1"),
)
TINY = {"model.d_model": 32, "model.ffn_dim": 32, "model.heads": 4}
TOY = [Size("3 sentences", TINY, 60, 3, None, ">= 0", recipe) for recipe in ("bgt", BOUND)]


class Ids(SizedTokenizer):
    """A tokenizer for sentences that are written as token ids, so that no time is spent on tokenisation."""

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        return [[*map(int, sentence.split()), EOS] for sentence in sentences]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(map(str, sentence)) for sentence in ids]

    def count_unknown(self, ids: Iterable[Sequence[int]]) -> int:
        return 0

    def texts(self) -> list[str]:
        return list(map(str, range(self.vocab_size)))


class Ends(nn.Module):
    """An output layer that ends each sentence at a given length; `lengths` is in the order of the sentences."""

    def __init__(self, layer: nn.Module, lengths: Tensor) -> None:
        super().__init__()
        self.layer, self.lengths, self.begun, self.written = layer, lengths, 0, 0

    def scorer(self, latent: Tensor) -> Scorer:
        """Start a search. Each sentence's length is appended to its row of `latent_bias`, so that the search drops the
        length together with a finished sentence."""
        inner = self.layer.scorer(latent)
        begun = self.begun % len(self.lengths)
        self.begun, self.written = begun + len(latent), 0
        lengths = self.lengths[begun : self.begun, None].to(inner.latent_bias.dtype)

        def score(features: Tensor, bias: Tensor) -> Tensor:
            self.written += 1
            return end(inner.score(features, bias[..., :-1]), bias[:, 0, -1] < self.written)

        return Scorer(torch.cat([inner.latent_bias, lengths], dim=1), score)


class EndsAt(LogitsProcessor):
    """A logits processor that makes transformers' `generate` end each sentence at a given length."""

    def __init__(self, lengths: Tensor) -> None:
        self.lengths = lengths.repeat_interleave(BEAM)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return end(scores, self.lengths < input_ids.shape[1])


def end(scores: Tensor, due: Tensor) -> Tensor:
    """In `scores` (B, ..., V), allow only EOS in sentences that must end now (`due`, (B,)), and forbid it in others."""
    scores[..., EOS] = -torch.inf
    rows = due.nonzero().squeeze(1)  # indices instead of a mask, because they are usually few
    scores[rows] = -torch.inf
    scores[rows, ..., EOS] = 0.0
    return scores


def marian(sizes: Mapping[str, int]) -> MarianMTModel:
    """Return a MarianMT model whose encoder and decoder have the sizes that the recipe gives our model."""
    layers = sizes.get("model.encoder_layers", sizes.get("model.composed_layers"))
    arguments: dict[str, Any] = {"encoder_layers": layers, "decoder_layers": sizes["model.decoder_layers"]}
    for side in ("encoder", "decoder"):
        arguments |= {f"{side}_ffn_dim": sizes["model.ffn_dim"], f"{side}_attention_heads": sizes["model.heads"]}
    arguments |= {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": EOS, "forced_eos_token_id": None}
    arguments |= {"d_model": sizes["model.d_model"], "activation_function": "relu", "scale_embedding": True}
    return MarianMTModel(MarianConfig(vocab_size=sizes["data.vocab_size"], **arguments)).eval()


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Compare our beam search with that of transformers for each of the sizes."""
    agreement = shipped_agreement(8 if options.toy else 256)
    for size in TOY if options.toy else SIZES:
        yield from rows_of(size, options, agreement)


def rows_of(size: Size, options: argparse.Namespace, agreement: str) -> Iterator[Measurement]:
    """Compare both beam searches for one size, with our model in fp32 and in bf16."""
    recipe = recipes.configure(size.recipe, {"data.vocab_size": size.vocab, **size.arguments})
    tokenizer = Ids(size.vocab)
    model, peer = recipe.build(tokenizer).eval(), marian(recipe.arguments)
    normal, draw = np.random.default_rng(0).normal(0, 0.5, size.sentences), np.random.default_rng(1)
    read = np.clip(np.round(12 * np.exp(normal)), 4, 30).astype(int).tolist()  # number of tokens of each source
    ids = [draw.integers(4, size.vocab, n).tolist() for n in read]
    lengths = torch.tensor([size.tokens or len(sentence) for sentence in ids])
    sources, most = tokenizer.decode(ids), int(lengths.max()) + 1
    embedders = {form: Embedder(model, tokenizer, ("en", "fr"), form) for form in ("fp32", "bf16")}
    errors = {"fp32": "tests compare it with a search without caches", "bf16": agreement}
    operations = operations_of(model, ids, lengths.tolist())
    model.decoders["en"].layer = Ends(model.decoders["en"].layer, lengths)

    def run(form: str) -> None:
        if form == "peer":
            written = [count for begun in range(0, len(ids), BATCH) for count in theirs(begun)]
        else:
            with autocast(embedders[form].device, form):
                texts = recombined(embedders[form], sources, sources, most)
            written = [len(text.split()) for text in texts]
        assert written == lengths.tolist(), form  # with other lengths, the two sides would do different work

    def theirs(begun: int) -> list[int]:
        side = Tokens.pad([[*sentence, EOS] for sentence in ids[begun : begun + BATCH]], "en")
        ends = LogitsProcessorList([EndsAt(lengths[begun : begun + BATCH])])
        arguments = {"num_beams": BEAM, "do_sample": False, "max_new_tokens": most, "logits_processor": ends}
        written = peer.generate(input_ids=side.ids, attention_mask=side.mask.long(), **arguments)
        return ((written != EOS) & (written != PAD)).sum(1).tolist()

    forms = {form: lambda number, form=form: run(form) for form in ("peer", *embedders)}
    times = turns(forms, options.rounds, clock_of(options.threads))
    for form in embedders:
        work, against = f"beam-{BEAM} generation, {size.name}, {form}", "transformers generate, fp32"
        floor = operations, product_rate(DTYPES[form], options.threads)
        both = times[form], times["peer"]
        yield compare(work, against, *both, size.target, errors[form], "sentences", size.sentences, *floor)


def recombined(bgt: Embedder, sources: Sequence[str], styles: Sequence[str], most: int) -> list[str]:
    """Generate texts of at most `most` tokens from sources and style sentences, by beam search without reranking."""
    return generate(bgt, sources, styles, lang="en", search=Beam(), rerank=False, max_length=most)


def shipped_agreement(count: int) -> str:
    """Describe how many of `count` sentences the default model generates identically in bf16 and in fp32."""
    texts = [pair.texts["en"] for pair in pairs(2 * count, seed=0)]
    exact, rounded = (bgt_core.load(precision=precision) for precision in ("fp32", "bf16"))
    expected = recombined(exact, texts[:count], texts[count:], 60)
    with autocast(rounded.device, "bf16"):
        written = recombined(rounded, texts[:count], texts[count:], 60)
    return f"{sum(map(str.__eq__, expected, written))} of {count} sentences of the shipped model as in fp32"


def operations_of(model: nn.Module, ids: Sequence[Sequence[int]], lengths: Sequence[int]) -> float:
    """Count the floating-point operations that involve weights. Each source is encoded twice. A sentence has one
    hypothesis in the first step of the search, and BEAM in later steps. Layers that map latents run once per sentence,
    and layers that map memory slots run once per slot."""
    decoder, count = model.decoders["en"], len(ids)
    read, written = sum(len(sentence) + 1 for sentence in ids), sum(1 + BEAM * length for length in lengths)
    times = {"encoders.semantic": read, "encoders.en": read, "decoders.en": written}
    once = dict.fromkeys(("mean", "log_variance", "fuse_latent", "latent", "project"), count)
    once |= dict.fromkeys(("slot", "kv"), count * decoder.memory.slots) if decoder.memory else {}
    tied = getattr(decoder.layer, "tied", None)  # a tied output layer multiplies by the table of token vectors
    total = 2.0 * tied.table.weight.numel() * written if tied else 0.0
    for name, module in model.named_modules():
        part, last = ".".join(name.split(".")[:2]), name.split(".")[-1]
        if isinstance(module, nn.Linear) and part in times:
            total += 2.0 * module.weight.numel() * once.get(last, times[part])
    return total
