"""Encoding against sentence-transformers: the same Transformer with the same weights, sentences a second.

Equal: the weights (copied into a BERT of sentence-transformers, which adds them up in the same way), the unigram
tokens, the sentences, the vectors to the error stated. Theirs is `SentenceTransformer.encode` with its defaults. The
sentences are made of invented words and of about 12 tokens. Each round has its own: 4,000 at d=256, so that five
rounds see 20,000, and 400 at d=1024. Both tokenise within the time.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from statistics import median

import numpy as np
import sentencepiece
import tokenizers
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.sentence_transformer.modules import Transformer as Wrapped
from torch import nn
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from benchmarks.measure import Measurement, clock_of, over, page, product_rate, profile
from benchmarks.workload import STS_YEARS, sentences
from bgt_core.contracts import EOS, PAD, SEMANTIC, UNK
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.evaluation.sts.files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts, average
from bgt_core.models.latent import LatentModel
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.layers import Transformer, make_embedding, sinusoids
from bgt_core.posterior import Point
from bgt_core.vectors.compare import cosines

VOCAB, HEADS, LONGEST = 8_000, 8, 256
CPU = torch.device("cpu")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
SIZES = {"d=256, 3 layers": (256, 3, 4_000), "d=1024, 5 layers": (1024, 5, 400)}  # width, layers, sentences a round


class Plain(nn.Module):
    """The body's vector is the embedding."""

    def forward(self, features: torch.Tensor) -> Point:
        return Point(features)


def peer_of(body: Transformer, tokenizer: Tokenizer, folder: str, device: torch.device) -> SentenceTransformer:
    """The same body and tokens, the way sentence-transformers holds them."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    scores = [(processor.id_to_piece(number), processor.get_score(number)) for number in range(len(processor))]
    cutter = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unk_id=UNK, byte_fallback=False))
    cutter.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    ending = [(processor.id_to_piece(EOS), EOS)]
    cutter.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {ending[0][0]}", pair=f"$A {ending[0][0]} $B {ending[0][0]}", special_tokens=ending
    )
    config = BertConfig(
        vocab_size=len(processor),
        hidden_size=body.width,
        num_hidden_layers=len(body.layers),
        num_attention_heads=HEADS,
        intermediate_size=body.width,
        hidden_act="relu",
        layer_norm_eps=1e-5,
        max_position_embeddings=LONGEST,
        pad_token_id=PAD,
    )
    bert = BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        words = bert.embeddings.word_embeddings.weight
        words.copy_(body.words.table.weight * math.sqrt(body.width))
        bert.embeddings.position_embeddings.weight.copy_(sinusoids(0, LONGEST, words))
        bert.embeddings.token_type_embeddings.weight.zero_()
        for ours, theirs in zip(body.layers, bert.encoder.layer, strict=True):
            attention = theirs.attention
            parts = (attention.self.query, attention.self.key, attention.self.value)
            qkv = ours.attention.qkv
            for part, weight, bias in zip(parts, qkv.weight.chunk(3), qkv.bias.chunk(3), strict=True):
                part.weight.copy_(weight), part.bias.copy_(bias)
            for source, to in (
                (ours.attention.out, attention.output.dense),
                (ours.norm_attention, attention.output.LayerNorm),
                (ours.feed[0], theirs.intermediate.dense),
                (ours.feed[2], theirs.output.dense),
                (ours.norm_feed, theirs.output.LayerNorm),
            ):
                to.load_state_dict(source.state_dict())
    bert.save_pretrained(folder)
    special = {
        "pad_token": processor.id_to_piece(PAD),
        "unk_token": processor.id_to_piece(UNK),
        "eos_token": ending[0][0],
    }
    PreTrainedTokenizerFast(tokenizer_object=cutter, model_max_length=LONGEST, **special).save_pretrained(folder)
    peer = SentenceTransformer(modules=[Wrapped(folder), Pooling(body.width, "mean")], device=str(device))
    peer[0].auto_model.embeddings.LayerNorm = nn.Identity()  # our input has none
    return peer


def encoders_of(
    width: int, layers: int, device: torch.device, count: int
) -> tuple[dict[str, Embedder], SentenceTransformer, list[str]]:
    """Our encoder in both precisions, the peer with the same weights, and that many sentences."""
    texts = sentences(max(count, 2_000))
    tokenizer = Tokenizer.train(texts, 2_000, lowercase=False)
    body = Transformer(make_embedding(2_000, width), layers, width, HEADS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        peer = peer_of(body, tokenizer, folder, device)
    model = LatentModel(("en",), {SEMANTIC: Encoder(body, Plain())}).to(device)
    return {form: Embedder(model, tokenizer, ["en"], form) for form in ("fp32", "bf16")}, peer, texts[:count]


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    texts = sentences(20_000)
    tokenizer = Tokenizer.train(texts, VOCAB, lowercase=False)
    sts_note = shipped_scores(options) if options.sts else ""
    clock = clock_of(options.threads)
    for name, (width, layers, count) in SIZES.items():
        body = Transformer(make_embedding(VOCAB, width), layers, width, HEADS, 0.0)
        model = LatentModel(("en",), {SEMANTIC: Encoder(body, Plain())})
        forms = {form: Embedder(model, tokenizer, ["en"], form) for form in DTYPES}
        times: dict[str, list[float]] = {"peer": [], **{form: [] for form in forms}}
        vectors: dict[str, list[np.ndarray]] = {form: [] for form in times}
        with tempfile.TemporaryDirectory() as folder:
            peer = peer_of(body, tokenizer, folder, CPU)
        encode = {"peer": lambda part, peer=peer: peer.encode(part, show_progress_bar=False)}
        encode |= {form: lambda part, model=model: model.embed(part, lang="en") for form, model in forms.items()}
        for form in times:
            encode[form](texts[:64])
        for number in range(options.rounds):
            part = texts[number * count : (number + 1) * count]
            for form in list(times)[:: 1 if number % 2 else -1]:
                begun = clock()
                vectors[form].append(encode[form](part))
                times[form].append((clock() - begun) / len(part))
        embedded = {form: np.concatenate(parts) for form, parts in vectors.items()}
        seen = tokenizer.encode(texts[: options.rounds * count])
        tokens = sum(map(len, seen)) / len(seen)
        linears = sum(part.weight.numel() for part in body.modules() if isinstance(part, nn.Linear))
        operations = 2 * linears * tokens
        for form, dtype in DTYPES.items():
            spent, floor = median(times[form]), operations / product_rate(dtype, options.threads)
            cosine = cosines(embedded[form], embedded["fp32"]).min()
            error = f"cosine to fp32 at least {cosine:.6f}{sts_note}"
            if form == "fp32":
                error = f"differs from the peer by at most {np.abs(embedded[form] - embedded['peer']).max():.0e}"
            yield Measurement(
                work=f"encoding, {name}, {tokens:.1f} tokens a sentence, {form}",
                against="sentence-transformers encode",
                ratios=over(times["peer"], times[form]),
                target=">= 75 % of the floor",
                ours=f"{1 / spent:,.0f} sentences/s",
                peer=f"{1 / median(times['peer']):,.0f}",
                error=error,
                floor=f"{operations / 1e6:,.0f} MFLOP a sentence, {1 / floor:,.0f} sentences/s",
                reached=floor / spent,
                bottleneck=profile(lambda model=forms[form], part=texts[:count]: model.embed(part, lang="en")),
            )


def shipped_scores(options: argparse.Namespace) -> str:
    """STS averages of the model that ships, language latent, whose encoder is a Transformer."""
    import bgt_core

    sets = read_sets(options.sts, STS_YEARS)
    scores = {
        form: average(
            evaluate(Sts(latent="language"), bgt_core.load(device="cpu", precision=form), sets, resamples=100)
        )
        for form in DTYPES
    }
    return "; STS of the shipped language latent " + ", ".join(f"{form} {score:.2f}" for form, score in scores.items())


if __name__ == "__main__":
    page(rows, __doc__)
