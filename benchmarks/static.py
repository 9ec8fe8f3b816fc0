"""Static encoders against model2vec: the mean of a sentence's token vectors, sentences a second.

Equal: the table, its width, the unigram tokens, the sentences (invented words, about 12 tokens), the vectors to the
error stated. Both tokenise within the time, theirs by `tokenizers`, ours by SentencePiece. Theirs is
`StaticModel.encode` with its defaults, in one process; its progress bar is off.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median

import numpy as np
import sentencepiece
import tokenizers
from model2vec import StaticModel

from benchmarks.measure import Measurement, clock_of, interleave, over, page, profile
from benchmarks.workload import sentences
from bgt_core import recipes
from bgt_core.contracts import UNK
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder

VOCAB, COUNT = 8_000, 20_000  # sentences a round
WIDTHS = (256, 384)


def peer_of(table: np.ndarray, tokenizer: Tokenizer) -> StaticModel:
    """The same table and tokens, the way model2vec holds them."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    scores = [(processor.id_to_piece(number), processor.get_score(number)) for number in range(len(processor))]
    cutter = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unk_id=UNK, byte_fallback=False))
    cutter.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return StaticModel(table, cutter)


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    texts = sentences(options.rounds * COUNT)
    parts = [texts[start : start + COUNT] for start in range(0, len(texts), COUNT)]
    tokenizer, clock = Tokenizer.train(texts[:COUNT], VOCAB, lowercase=False), clock_of(options.threads)
    for width in WIDTHS:
        recipe = recipes.build("avg", {"data.vocab_size": VOCAB, "model.d_model": width})
        model = recipe.build(tokenizer).eval()
        peer = peer_of(model.semantic_table.weight.detach().numpy(), tokenizer)
        ours = Embedder(model, tokenizer, ["en"], "fp32")

        def embed(number: int, ours: Embedder = ours) -> np.ndarray:
            return ours.embed(parts[number], lang="en")

        def encode(number: int, peer: StaticModel = peer) -> np.ndarray:
            return peer.encode(parts[number], use_multiprocessing=False)

        times, theirs = interleave(embed, encode, options.threads, options.rounds)
        alone = []
        for part in parts:
            begun = clock()
            tokenizer.encode(part)
            alone.append(clock() - begun)
        yield Measurement(
            work=f"encoding, mean of token vectors, {width} units, fp32",
            against="model2vec encode",
            ratios=over(theirs, times),
            target=">= 1",
            ours=f"{COUNT / median(times):,.0f} sentences/s",
            peer=f"{COUNT / median(theirs):,.0f}",
            error=f"differs from the peer by at most {np.abs(embed(0) - encode(0)).max():.0e}",
            floor=f"tokenising alone, {COUNT / median(alone):,.0f} sentences/s",
            reached=median(alone) / median(times),
            bottleneck=profile(lambda embed=embed: embed(0)),
        )


if __name__ == "__main__":
    page(rows, __doc__)
