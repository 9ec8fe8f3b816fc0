"""Compare our speed of encoding with that of other tools, for a Transformer and for a mean of token vectors.

The other tools are `SentenceTransformer.encode` and model2vec's `StaticModel.encode`, with their default settings, in
the same process. Both sides have the same weights, unigram tokens and sentences, and their vectors are equal up to the
stated error. The sentences consist of invented words, have about 12 tokens, and differ between rounds. Times include
tokenisation. For a mean of token vectors, the floor is the time of tokenisation alone.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np
import sentencepiece
import tokenizers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.sentence_transformer.modules import Transformer as Wrapped
from torch import Tensor, nn, no_grad
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from bench.measure import DTYPES, Measurement, clock_of, compare, product_rate, turns
from bench.workload import sentences
from bgt_core import recipes
from bgt_core.contracts import EOS, PAD, SEMANTIC, UNK
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.layers import Transformer, make_embedding, sinusoids
from bgt_core.posterior import Point
from bgt_core.vectors.arrays import cosines

HEADS, LONGEST = 8, 256
SIZES = {"d=256, 3 layers": (256, 3, 4_000), "d=1024, 5 layers": (1024, 5, 400)}  # width, layers; sentences per round
TOY = {"d=16, 1 layer": (16, 1, 100)}
STATIC = {256: 20_000, 384: 20_000}  # width of a table of token vectors -> sentences per round


class Plain(nn.Module):
    """A head that returns the Transformer's pooled vector unchanged, as a posterior without variance."""

    def forward(self, features: Tensor) -> Point:
        return Point(features)


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Compare the speed of Transformers in each precision, then of means of token vectors."""
    sizes, static = (TOY, {16: 100}) if options.toy else (SIZES, STATIC)
    texts = sentences(options.rounds * (400 if options.toy else 20_000))
    tokenizer = Tokenizer.train(texts[:20_000], 400 if options.toy else 8_000, lowercase=False)
    for name, (width, layers, count) in sizes.items():
        yield from transformer_rows(name, width, layers, texts[: options.rounds * count], tokenizer, options)
    for width, count in static.items():
        yield static_row(width, texts[: options.rounds * count], tokenizer, options)


def transformer_rows(
    name: str, width: int, layers: int, texts: list[str], tokenizer: Tokenizer, options: argparse.Namespace
) -> Iterator[Measurement]:
    body = Transformer(make_embedding(tokenizer.vocab_size, width), layers, width, HEADS, 0.0)
    model = LatentModel(("en",), {SEMANTIC: Encoder(body, Plain())})
    count = len(texts) // options.rounds
    embedded: dict[str, dict[int, np.ndarray]] = {}
    encode = {form: Embedder(model, tokenizer, ["en"], form) for form in DTYPES}
    with tempfile.TemporaryDirectory() as folder:
        peer = peer_of(body, tokenizer, folder)

    def run(form: str, number: int) -> None:
        part = texts[number * count : (number + 1) * count]
        vectors = encode[form].embed(part, lang="en") if form in encode else peer.encode(part, show_progress_bar=False)
        embedded.setdefault(form, {})[number] = vectors

    forms = {form: lambda number, form=form: run(form, number) for form in ("peer", *encode)}
    times = turns(forms, options.rounds, clock_of(options.threads))
    vectors = {form: np.concatenate(list(parts.values())) for form, parts in embedded.items()}
    tokens = sum(map(len, tokenizer.encode(texts))) / len(texts)
    linears = sum(part.weight.numel() for part in body.modules() if isinstance(part, nn.Linear))
    for form, dtype in DTYPES.items():
        error = f"cosine to fp32 at least {cosines(vectors[form], vectors['fp32']).min():.6f}"
        if form == "fp32":
            error = f"differs from the peer by at most {np.abs(vectors[form] - vectors['peer']).max():.0e}"
        work, against = f"encoding, {name}, {tokens:.1f} tokens per sentence, {form}", "sentence-transformers encode"
        floor = 2 * linears * tokens * count, product_rate(dtype, options.threads)
        target = ">= 75 % of the floor"
        yield compare(work, against, times[form], times["peer"], target, error, "sentences", count, *floor)


def unigram(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """Return a tokenizer of Hugging Face's library that returns the same tokens as ours."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    scores = [(processor.id_to_piece(number), processor.get_score(number)) for number in range(len(processor))]
    cutter = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unk_id=UNK, byte_fallback=False))
    cutter.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return cutter


def peer_of(body: Transformer, tokenizer: Tokenizer, folder: str) -> SentenceTransformer:
    """Return a sentence-transformers model with the same Transformer and the same tokens as ours."""
    cutter = unigram(tokenizer)
    unk, pad, eos = (cutter.id_to_token(number) for number in (UNK, PAD, EOS))
    cutter.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {eos}", pair=f"$A {eos} $B {eos}", special_tokens=[(eos, EOS)]
    )
    sizes = {"hidden_size": body.width, "intermediate_size": body.width, "max_position_embeddings": LONGEST}
    sizes |= {"num_hidden_layers": len(body.layers), "num_attention_heads": HEADS, "pad_token_id": PAD}
    config = BertConfig(vocab_size=cutter.get_vocab_size(), hidden_act="relu", layer_norm_eps=1e-5, **sizes)
    bert = BertModel(config, add_pooling_layer=False).eval()
    with no_grad():
        words = bert.embeddings.word_embeddings.weight
        words.copy_(body.words.table.weight * math.sqrt(body.width))
        bert.embeddings.position_embeddings.weight.copy_(sinusoids(0, LONGEST, words))
        bert.embeddings.token_type_embeddings.weight.zero_()
        for ours, theirs in zip(body.layers, bert.encoder.layer, strict=True):
            attention, qkv = theirs.attention, ours.attention.qkv
            parts = (attention.self.query, attention.self.key, attention.self.value)
            for part, weight, bias in zip(parts, qkv.weight.chunk(3), qkv.bias.chunk(3), strict=True):
                part.weight.copy_(weight), part.bias.copy_(bias)
            copied = (ours.attention.out, ours.norm_attention, ours.feed[0], ours.feed[2], ours.norm_feed)
            outputs = (attention.output.dense, attention.output.LayerNorm, theirs.intermediate.dense)
            for source, to in zip(copied, (*outputs, theirs.output.dense, theirs.output.LayerNorm), strict=True):
                to.load_state_dict(source.state_dict())
    bert.save_pretrained(folder)
    special = {"pad_token": pad, "unk_token": unk, "eos_token": eos}
    PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=LONGEST, **special).save_pretrained(folder)
    peer = SentenceTransformer(modules=[Wrapped(folder), Pooling(body.width, "mean")], device="cpu")
    peer[0].auto_model.embeddings.LayerNorm = nn.Identity()  # because our Transformer does not normalise its input
    return peer


def static_row(width: int, texts: list[str], tokenizer: Tokenizer, options: argparse.Namespace) -> Measurement:
    """Compare our mean of token vectors with model2vec's mean."""
    from model2vec import StaticModel  # imported here, because only the extra `bench` installs it

    count = len(texts) // options.rounds
    parts = [texts[start : start + count] for start in range(0, len(texts), count)]
    recipe = recipes.configure("avg", {"data.vocab_size": tokenizer.vocab_size, "model.d_model": width})
    model = recipe.build(tokenizer).eval()
    peer = StaticModel(model.semantic_table.weight.detach().numpy(), unigram(tokenizer))
    ours = Embedder(model, tokenizer, ["en"], "fp32")
    forms = {
        "ours": lambda number: ours.embed(parts[number], lang="en"),
        "peer": lambda number: peer.encode(parts[number], use_multiprocessing=False),
        "tokens": lambda number: tokenizer.encode(parts[number]),
    }
    times = turns(forms, options.rounds, clock_of(options.threads))
    work = f"encoding, mean of token vectors, {width} units, fp32"
    error_text = f"differs from the peer by at most {np.abs(forms['ours'](0) - forms['peer'](0)).max():.0e}"
    alone = median(times["tokens"])
    row = compare(work, "model2vec encode", times["ours"], times["peer"], ">= 1", error_text, "sentences", count)
    floor = f"tokenising alone, {count / alone:,.0f} sentences/s"
    return replace(row, floor=floor, reached=alone / median(times["ours"]))
