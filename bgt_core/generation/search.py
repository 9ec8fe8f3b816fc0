"""Generate sentences from latents or encoder states, by greedy search, beam search or sampling."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bgt_core.contracts import BOS, EOS, PAD, UNK, Decoder, DecoderState, GenerativeModel
from bgt_core.data.columns import known_lang
from bgt_core.embedder import Embedder
from bgt_core.errors import UsageError, check_least
from bgt_core.generation.options import DEFAULT_SEARCH, Beam, Sample, Search
from bgt_core.vectors.arrays import matrix

NEVER = (PAD, UNK, BOS)  # tokens that are never generated
AT_ONCE = 128  # maximum number of sentences per batch; limits the memory for B x beam x V scores
BLOCK = 160  # maximum size of the blocks into which `largest` divides a row of scores


class Context(Protocol):
    """The input of a decoder for B sentences: latents (B, L), or `nets.decoder.EncoderStates`."""

    def __len__(self) -> int: ...

    @property
    def device(self) -> torch.device: ...


Report = Callable[[int], None]  # called with the number of tokens so far; it may end the search by an exception


def quiet(tokens: int) -> None:
    """Do nothing: the default of the argument `report`."""


def generative(bgt: Embedder) -> GenerativeModel:
    """Return the model of an embedder; UsageError if the model can't generate text."""
    model = getattr(bgt, "model", None)  # encoders of other libraries have no model
    if not isinstance(model, GenerativeModel):
        raise UsageError("This model can't generate from its latents: use a model of the recipe `bgt`.")
    return model


def decode(
    bgt: Embedder,
    latents: Mapping[str, np.ndarray],
    *,
    lang: str,
    search: Search = DEFAULT_SEARCH,
    seed: int = 0,
    max_length: int = 60,
    report: Report = quiet,
) -> list[str]:
    """Generate a sentence of `lang` for each row of the latents, {name: (N, L)}.

    The input of the decoder is [language ; semantic], as in training. (The code released with the BGT paper decodes
    from another vector than it trains with.) Raises UsageError if the latents differ in length or are not the latents
    of the model, or if the model lacks the language.

    >>> bgt = bgt_core.load()
    >>> latents = {latent: bgt.embed(["Is it late?"], lang="en", latent=latent) for latent in bgt.latents}
    >>> decode(bgt, latents, lang="en")
    ['is it late?']
    """
    lang = known_lang(lang, bgt.langs, "this model")
    joined, decoder = decoder_input(bgt, latents, lang, max_length), generative(bgt).decoder(lang)
    generator = torch.Generator(joined.device).manual_seed(seed)
    written: list[list[int]] = []
    with torch.no_grad():  # not inference_mode, in which autocast converts every weight at every step
        for part in joined.split(AT_ONCE) if len(joined) else ():
            if isinstance(search, Sample):
                written += sample(decoder, part, search, max_length, generator, report)
            else:
                written += [best.tokens for best, *_ in n_best(decoder, part, search, 1, max_length, report)]
    return bgt.tokenizer.decode(written)


def decoder_input(bgt: Embedder, latents: Mapping[str, np.ndarray], lang: str, max_length: int) -> Tensor:
    """Join latents, (N, L) each, to the decoder's input for `lang`, (N, L_lang + L). Raises the errors of `decode`."""
    model = generative(bgt)
    for latent in latents:
        bgt.encoder(latent, lang)
    if missing := [latent for latent in bgt.latents if latent not in latents]:
        raise UsageError(f"The decoder needs the latents {', '.join(bgt.latents)}; '{missing[0]}' is missing.")
    latents = {name: matrix(part, name, ("N", bgt.width(lang, name))) for name, part in latents.items()}
    counts = {latent: len(vectors) for latent, vectors in latents.items()}
    if len(set(counts.values())) > 1:
        given = ", ".join(f"{count} {latent}" for latent, count in counts.items())
        raise UsageError(f"latents have different numbers of rows ({given}); expected one row per sentence in each.")
    check_least(1, max_length=max_length)
    device = next(model.parameters()).device
    parts = {name: torch.tensor(part, dtype=torch.float32, device=device) for name, part in latents.items()}
    return model.join(parts)


def next_scores(decoder: Decoder, tokens: Tensor, state: DecoderState) -> Tensor:
    """Compute the logits of the next token for n hypotheses: (B, n) -> (B, n, V). EOS can't be the first token."""
    barred = NEVER if state.position else (*NEVER, EOS)
    scores = decoder.step(tokens, state).float()
    scores[:, :, barred] = -torch.inf
    return scores


def sample(
    decoder: Decoder,
    context: Context,
    config: Sample,
    max_length: int,
    generator: torch.Generator,
    report: Report = quiet,
) -> list[list[int]]:
    """Draw one sentence for each row by nucleus sampling (Holtzman et al. 2020); return its token ids."""
    tokens = torch.full((len(context),), EOS, device=context.device)
    state, written = decoder.start(context), tokens.new_empty(len(context), 0)
    done = torch.zeros_like(tokens, dtype=torch.bool)
    for length in range(max_length):
        report(length)
        scores = allowed(next_scores(decoder, tokens[:, None], state), written[:, None], config)[:, 0]
        scores = scores.log_softmax(-1) / config.temperature
        probs, order = scores.softmax(-1).sort(-1, descending=True)
        outside = probs.cumsum(-1) - probs >= config.top_p  # the most probable token is never outside
        drawn = torch.multinomial(probs.masked_fill(outside, 0.0), 1, generator=generator)  # (B, 1)
        tokens = order.gather(1, drawn).squeeze(1).masked_fill(done, EOS)
        written = torch.cat([written, tokens[:, None]], 1)
        done = done | (tokens == EOS)
        if done.all():
            break
    return [until_end(row) for row in written.tolist()]


@dataclass(frozen=True)
class Hypothesis:
    """A sentence found by beam search."""

    tokens: list[int]  # token ids without EOS
    mean: float  # log-probability per token in nats, EOS included


def n_best(
    decoder: Decoder, context: Context, search: Beam, count: int, max_length: int, report: Report = quiet
) -> list[list[Hypothesis]]:
    """Run a beam search over a batch. Return the `count` best hypotheses of each sentence, the best first; fewer if the
    beam is smaller, or if there are fewer hypotheses.

    A finished hypothesis stays in the beam with its final score. A sentence leaves the batch when all its hypotheses
    are finished.
    """
    winners: dict[int, list[Hypothesis]] = {}
    rows = torch.arange(len(context), device=context.device)  # sentence index of each row of the batch, (B,)
    tokens = torch.full((len(context), 1), EOS, device=context.device)  # start with one hypothesis per sentence
    written, totals = tokens.new_empty(len(context), 1, 0), torch.zeros_like(tokens, dtype=torch.float)
    done = torch.zeros_like(tokens, dtype=torch.bool)
    state = decoder.start(context)
    for length in range(1, max_length + 1):
        report(length - 1)
        scores = next_scores(decoder, tokens, state)
        log_probs, choices = most_probable(scores, search.size, allowed(scores, written, search))  # (B, n, k)
        log_probs = log_probs.masked_fill(done[:, :, None], -torch.inf)
        log_probs[:, :, 0].masked_fill_(done, 0.0)  # a finished hypothesis repeats EOS at no cost
        choices = choices.masked_fill(done[:, :, None], EOS)
        sums = (totals[:, :, None] + log_probs).flatten(1)  # (B, n * k)
        totals, best = sums.topk(min(search.size, sums.shape[1]))
        parents, tokens = best // log_probs.shape[2], choices.flatten(1).gather(1, best)  # (B, n)
        state.reorder(parents)
        before = written.gather(1, parents[:, :, None].expand(-1, -1, length - 1))
        written, done = torch.cat([before, tokens[:, :, None]], dim=2), tokens == EOS
        ended = done.all(1) | (length == max_length)
        if not ended.any():
            continue
        lengths = (written != EOS).sum(2) + done
        _, order = (totals / lengths**search.length_penalty)[ended].topk(min(count, totals.shape[1]))
        means = (totals / lengths)[ended].gather(1, order)
        ids = written[ended].gather(1, order[:, :, None].expand(-1, -1, length))
        for row, of_row in zip(rows[ended].tolist(), zip(means.tolist(), ids.tolist(), strict=True), strict=True):
            best_first = zip(*of_row, strict=True)
            winners[row] = [Hypothesis(until_end(ids), mean) for mean, ids in best_first if mean != -math.inf]
        going = (~ended).nonzero().squeeze(1)
        if not len(going):
            break
        state.select(going)
        rows, tokens, written, totals, done = (part[going] for part in (rows, tokens, written, totals, done))
    return [winners[row] for row in range(len(context))]


def most_probable(scores: Tensor, size: int, permitted: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and ids of the `size` most probable tokens, (B, n, size), the best first; fewer if V is
    smaller. Overwrites `scores` (B, n, V). `permitted` contains the same scores, with -inf for excluded tokens."""
    rows = scores.view(-1, scores.shape[-1])
    top, tokens = largest(permitted.view(rows.shape), min(size, rows.shape[1]))
    most = top[:, :1] if permitted is scores else rows.amax(1, keepdim=True)
    mass = rows.sub_(most).exp_().sum(1, keepdim=True)
    shape = (*scores.shape[:2], -1)
    return (top - most - mass.log()).view(shape), tokens.view(shape)


def largest(scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Compute `topk` of each row, (N, V) -> values and indices, (N, size), in a third of torch's time. The largest
    values can only be in the blocks with the largest maxima."""
    count, vocab = scores.shape
    width = max(width for width in range(1, BLOCK + 1) if vocab % width == 0)
    blocks = scores.view(count, -1, width)
    chosen = blocks.amax(2).topk(min(size, blocks.shape[1])).indices  # (N, blocks kept)
    flat = torch.arange(count, device=scores.device)[:, None] * blocks.shape[1] + chosen
    kept = blocks.flatten(0, 1).index_select(0, flat.flatten()).view(count, -1)
    values, best = kept.topk(size)
    return values, chosen.gather(1, best // width) * width + best % width


def until_end(ids: list[int]) -> list[int]:
    """Return the tokens before the first EOS."""
    return ids[: ids.index(EOS)] if EOS in ids else ids


def allowed(scores: Tensor, written: Tensor, search: Search) -> Tensor:
    """Exclude tokens that would break the limits of `search`: set their scores for the next token, (B, n, V), to -inf.
    `written` contains the hypotheses so far, (B, n, T). Returns a copy, or `scores` itself if no limit applies yet."""
    size, most, length = search.no_repeat_ngram, search.max_run, written.shape[2]
    if size and length >= size:  # exclude tokens that followed an earlier copy of the last n - 1 tokens
        ngrams = written.unfold(2, size, 1)  # (B, n, T - size + 1, size)
        repeated = (ngrams[..., :-1] == written[:, :, None, length - size + 1 :]).all(-1)
        scores = barred(scores, ngrams[..., -1], repeated)
    if most and length >= most:  # exclude the last token if it occurs `most` times in a row
        last = written[:, :, -1:]
        scores = barred(scores, last, (written[:, :, -most:] == last).all(2, keepdim=True))
    return scores


def barred(scores: Tensor, tokens: Tensor, where: Tensor) -> Tensor:
    """Return a copy of the scores (B, n, V) with -inf at tokens (B, n, k) for which `where` (B, n, k) is True."""
    bars = torch.where(where, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce(2, tokens, bars, "amin")
