"""Several sentences for the same latents, ranked by how much of these latents the model reads from each again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bgt_core.contracts import SEMANTIC
from bgt_core.generation.options import DEFAULT, Beam, Sample, Search
from bgt_core.generation.search import AT_ONCE, Report, SentenceWriter, decode, decoder_input, n_best, quiet

# Of 0.25, 0.5, 1 by 0, 0.1, 0.2, 0.3, 0.5, 1: better than no reranking in both latents, in chrF, and in what is written
# with another sentence's style, where similarities alone prefer broken sentences.
SECOND_WEIGHT, LIKELIHOOD_WEIGHT = 0.5, 0.3


@dataclass(frozen=True)
class Candidate:
    """A sentence that was written from latents, and its similarity to each of them, by the latent's name."""

    text: str
    kept: Mapping[str, float]
    score: float


def candidates(
    bgt: SentenceWriter,
    latents: Mapping[str, np.ndarray],
    *,
    lang: str,
    search: Search = DEFAULT,
    rerank: bool = True,
    second_weight: float = SECOND_WEIGHT,
    likelihood_weight: float = LIKELIHOOD_WEIGHT,
    seed: int = 0,
    max_length: int = 60,
    report: Report = quiet,
) -> list[list[Candidate]]:
    """For each row of the latents, (N, L) each, the different sentences that end a beam search, or the one that is
    drawn, the one of the highest score first; errors as `decode`.

    Each is embedded again. Its score is its semantic similarity to the latents it is written from, plus
    `second_weight` times that of the other latent, plus `likelihood_weight` times its log-probability per token in
    nats; without `rerank` the order is that of the search, by likelihood.
    """
    if isinstance(search, Sample):
        drawn = decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length, report=report)
        texts = [{text: 0.0} for text in drawn]
    else:
        texts = hypotheses(bgt, decoder_input(bgt, latents, lang, max_length), lang, search, max_length, report)
    row_of = np.repeat(np.arange(len(texts)), [len(of_row) for of_row in texts])  # (all candidates,)
    flat = [item for of_row in texts for item in of_row.items()]
    written = [text for text, _ in flat]
    kept = {
        latent: bgt.similarity_pairwise(bgt.embed(written, lang=lang, latent=latent), vectors[row_of])
        for latent, vectors in latents.items()
    }
    ranked: list[list[Candidate]] = [[] for _ in texts]
    for place, (row, (text, mean)) in enumerate(zip(row_of, flat, strict=True)):
        similarities = {latent: float(values[place]) for latent, values in kept.items()}
        weights = {latent: 1.0 if latent == SEMANTIC else second_weight for latent in kept}
        score = likelihood_weight * mean + sum(weights[latent] * similarities[latent] for latent in kept)
        ranked[row].append(Candidate(text, similarities, score))
    return [sorted(of_row, key=lambda each: -each.score) for of_row in ranked] if rerank else ranked


def hypotheses(
    bgt: SentenceWriter, joined: Tensor, lang: str, search: Beam, max_length: int, report: Report
) -> list[dict[str, float]]:
    """The different sentences that end a beam search from each row of what the decoder reads, the likeliest first, with
    the log-probability per token."""
    texts: list[dict[str, float]] = []
    with torch.no_grad():
        for part in joined.split(AT_ONCE) if len(joined) else ():
            for ended in n_best(bgt.model.decoder(lang), part, search, search.size, max_length, report):
                texts.append({})
                for text, each in zip(bgt.tokenizer.decode([each.pieces for each in ended]), ended, strict=True):
                    texts[-1].setdefault(text, each.mean)
    return texts
