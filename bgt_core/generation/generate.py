"""Generate sentences with the meaning of one sentence and the style of another.

The library, `bgt generate` and the app all use `generate`. From the candidates of a beam search it returns the
one whose own latents are closest to the given ones; `candidates` returns all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

import numpy as np
import torch

from bgt_core.capabilities import CorrectingModel
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, Tokens
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import UsageError
from bgt_core.generation.options import DEFAULT_SEARCH, Beam, Sample, Search
from bgt_core.generation.search import (
    AT_ONCE,
    Context,
    Report,
    SentenceWriter,
    decode,
    decoder_input,
    generative,
    n_best,
    quiet,
)
from bgt_core.vectors.convert import matrix

# Weights chosen from 0.25, 0.5, 1 by 0, 0.1, 0.2, 0.3, 0.5, 1: better than no reranking in both latents, in chrF, and
# in texts with another sentence's style, where similarities alone prefer broken sentences.
SECOND_WEIGHT, LIKELIHOOD_WEIGHT = 0.5, 0.3


def generate(
    bgt: SentenceWriter,
    sources: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    source_lang: str | None = None,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = True,
    seed: int = 0,
    max_length: int = 60,
) -> list[str]:
    """Write the meaning of each source in the style of the sentence beside it.

    Args:
        bgt: An embedder whose model has language latents, or a syntactic one, and a decoder.
        sources, styles: N sentences each.
        lang: Language of the styles, and of the output.
        source_lang: Language of the sources, by default `lang`.
        search: A `Beam` or a `Sample`.
        rerank: Return the candidate that keeps most of both latents, not the most probable one.
        seed: Seed of a `Sample`; the same seed gives the same text.
        max_length: Maximum number of tokens of an output.

    Returns:
        N sentences.

    Raises:
        UsageError: Unequal numbers of sentences, an unknown language, or a model that has no style or can't generate.

    >>> generate(bgt_core.load(), ["The old man sees the red car."], ["Is it late?"], lang="en")
    ['the old man sees the red car?']
    """
    latents = exchanged(bgt, sources, styles, lang, source_lang or lang)
    if not rerank:
        return decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length)
    ranked = candidates(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length)
    return [best.text for best, *_ in ranked]


def exchanged(
    bgt: SentenceWriter, sources: Sequence[str], styles: Sequence[str], lang: str, source_lang: str
) -> dict[str, np.ndarray]:
    """The latents that `generate` decodes: the semantic ones of N sources, and the other latents of N styles."""
    second = style_latent(bgt)
    sources, styles = sentence_list(sources), sentence_list(styles)
    if len(sources) != len(styles):
        raise UsageError(f"{len(sources)} sources but {len(styles)} styles; each source needs one style.")
    return {
        second: bgt.embed(styles, lang=lang, latent=second),
        SEMANTIC: bgt.embed(sources, lang=source_lang, latent=SEMANTIC),
    }


def style_latent(bgt: SentenceWriter) -> str:
    """The name of the latent for style; UsageError for a model without one."""
    second = next((latent for latent in (LANGUAGE, SYNTACTIC) if latent in bgt.latents), None)
    if second is None:
        raise UsageError(
            "This model has no latent for style (language or syntactic); use "
            "one trained by `bgt`, `bgt-small` or `vgvae`.",
        )
    return second


def from_vectors(
    bgt: SentenceWriter,
    vectors: np.ndarray,
    *,
    lang: str,
    style: str | None = None,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = False,
    corrections: int = 0,
    seed: int = 0,
    max_length: int = 60,
) -> list[list[str]]:
    """Write sentences from semantic vectors.

    Args:
        bgt: An embedder whose model can generate; for a writer, the vectors are its encoder's.
        vectors: Semantic vectors of N sentences, (N, D), of any kind that `vectors.convert` takes.
        lang: Language of the output.
        style: A sentence that gives the language latent; by default it is the mean of its prior.
        search: A `Beam` or a `Sample`.
        rerank: Embed each text of the beam, and put first the one with the highest cosine to its vector.
        corrections: Rounds in which a writer of drafts writes again from the best text so far; they rerank as well.
        seed: Seed of a `Sample`.
        max_length: Maximum number of tokens of a text.

    Returns:
        For each vector the distinct texts of the beam, or the one that was drawn, the best first.

    Raises:
        UsageError: A model that can't generate, or reads no drafts; an unknown language; a style for a model without a
            latent for it.
        DataError: Vectors of another width, and as `matrix`.
    """
    lang = known_lang(lang, bgt.langs, "this model")
    model, width = generative(bgt), bgt.width(lang, SEMANTIC)
    vectors = matrix(vectors, "vectors", ("N", width))
    latents = {SEMANTIC: vectors}
    for latent in bgt.latents:
        if latent != SEMANTIC:
            zeros = np.zeros((len(vectors), bgt.width(lang, latent)), np.float32)
            mean = model.prior_mean(latent, torch.from_numpy(zeros))
            latents[latent] = mean.cpu().numpy()
    if style is not None:
        second = style_latent(bgt)
        latents[second] = np.repeat(bgt.embed([style], lang=lang, latent=second), len(vectors), axis=0)
    if rerank or corrections:
        ranked = candidates(
            bgt, latents, lang=lang, search=search, second_weight=0.0, likelihood_weight=0.0, corrections=corrections,
            seed=seed, max_length=max_length,
        )  # fmt: skip
        return [[each.text for each in of_row] for of_row in ranked]
    if isinstance(search, Sample):
        drawn = decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length)
        return [[text] for text in drawn]
    contexts = decoder_input(bgt, latents, lang, max_length).split(AT_ONCE)
    return [list(of_row) for of_row in hypotheses(bgt, contexts, lang, search, max_length, quiet)]


@dataclass(frozen=True)
class Candidate:
    """A sentence generated from latents, and its similarity to each of them, by the latent's name."""

    text: str
    kept: Mapping[str, float]
    score: float


def candidates(
    bgt: SentenceWriter,
    latents: Mapping[str, np.ndarray],
    *,
    lang: str,
    search: Search = DEFAULT_SEARCH,
    rerank: bool = True,
    second_weight: float = SECOND_WEIGHT,
    likelihood_weight: float = LIKELIHOOD_WEIGHT,
    corrections: int = 0,
    seed: int = 0,
    max_length: int = 60,
    report: Report = quiet,
) -> list[list[Candidate]]:
    """For each row of the latents, (N, L) each, the distinct candidates of a beam search, or the one drawn sentence,
    the highest score first; errors as `decode`.

    Each is embedded again. Its score is its semantic similarity to the given latents, plus `second_weight` times that
    of the other latent, which is left out if the weight is 0, plus `likelihood_weight` times its log-probability per
    token in nats; without `rerank` the order is that of the search, by likelihood. In each of the `corrections`, a
    writer reads the best text so far as a draft; what it then writes are candidates too.
    """
    latents = {name: matrix(of, name) for name, of in latents.items()}
    lang = known_lang(lang, bgt.langs, "this model")
    if isinstance(search, Sample):
        if corrections:
            raise UsageError(f"{corrections}: needs a beam, not draws.", parameter="corrections")
        drawn = decode(bgt, latents, lang=lang, search=search, seed=seed, max_length=max_length, report=report)
        texts = [{text: 0.0} for text in drawn]
    else:
        contexts = decoder_input(bgt, latents, lang, max_length).split(AT_ONCE)
        texts = hypotheses(bgt, contexts, lang, search, max_length, report)
    by_score = attrgetter("score")
    weights = {latent: 1.0 if latent == SEMANTIC else second_weight for latent in latents}
    ranked = scored(bgt, texts, latents, lang, weights, likelihood_weight)
    for _ in range(corrections):
        best = [max(of_row, key=by_score).text for of_row in ranked]
        again = hypotheses(bgt, drafted(bgt, latents, best, lang), lang, cast(Beam, search), max_length, report)
        seen = [{each.text for each in of_row} for of_row in ranked]
        new = [
            {text: mean for text, mean in of_row.items() if text not in known}
            for of_row, known in zip(again, seen, strict=True)
        ]
        for of_row, more in zip(ranked, scored(bgt, new, latents, lang, weights, likelihood_weight), strict=True):
            of_row += more
    return [sorted(of_row, key=by_score, reverse=True) for of_row in ranked] if rerank else ranked


def scored(
    bgt: SentenceWriter,
    texts: Sequence[Mapping[str, float]],
    latents: Mapping[str, np.ndarray],
    lang: str,
    weights: Mapping[str, float],
    likelihood_weight: float,
) -> list[list[Candidate]]:
    """Embed the texts of each row again: each text with its log-probability per token -> candidates, in their order.

    Latents with the weight 0 are left out.
    """
    row_of = np.repeat(np.arange(len(texts)), [len(of_row) for of_row in texts])  # (all candidates,)
    flat = [item for of_row in texts for item in of_row.items()]
    written = [text for text, _ in flat]
    kept = {
        latent: bgt.similarity_pairwise(bgt.embed(written, lang=lang, latent=latent), latents[latent][row_of])
        for latent, weight in weights.items()
        if weight
    }
    of_rows: list[list[Candidate]] = [[] for _ in texts]
    for place, (row, (text, mean)) in enumerate(zip(row_of, flat, strict=True)):
        similarities = {latent: float(values[place]) for latent, values in kept.items()}
        total = likelihood_weight * mean + sum(weights[latent] * similarities[latent] for latent in kept)
        of_rows[row].append(Candidate(text, similarities, total))
    return of_rows


def drafted(
    bgt: SentenceWriter, latents: Mapping[str, np.ndarray], drafts: Sequence[str], lang: str
) -> Iterator[Context]:
    """The input of a decoder that reads drafts, for `AT_ONCE` rows at a time; UsageError for a model without one."""
    model = bgt.model
    if not isinstance(model, CorrectingModel):
        raise UsageError("This model reads no drafts; corrections need a writer of `bgt train writer`.")
    device, vectors = next(model.parameters()).device, bgt.embed(drafts, lang=lang)
    for start in range(0, len(drafts), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        tensors = {latent: torch.tensor(rows[part], device=device) for latent, rows in latents.items()}
        side = Tokens.pad(bgt.tokenizer.encode(drafts[part]), lang).to(device)
        yield model.drafted(tensors, side, torch.tensor(vectors[part], device=device))


def hypotheses(
    bgt: SentenceWriter, contexts: Iterable[Context], lang: str, search: Beam, max_length: int, report: Report
) -> list[dict[str, float]]:
    """The distinct candidates of a beam search for each row of the decoder's inputs, the likeliest first, with their
    log-probability per token."""
    texts: list[dict[str, float]] = []
    decoder = generative(bgt).decoder(lang)
    with torch.no_grad():
        for context in filter(len, contexts):
            for ended in n_best(decoder, context, search, search.size, max_length, report):
                texts.append({})
                for text, each in zip(bgt.tokenizer.decode([each.tokens for each in ended]), ended, strict=True):
                    texts[-1].setdefault(text, each.mean)
    return texts
