"""Generation: sentences from latents, by greedy search, beam search or sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from bgt_core.contracts import BOS, EOS, LANGUAGE, PAD, SEMANTIC, UNK, BadInput, Embeds
from bgt_core.nets.transformer import Decoder
from bgt_core.text import Tokenizer

NEVER = (PAD, UNK, BOS)  # pieces that no search writes
AT_ONCE = 64  # sentences searched together: bounds the memory, B x beam x V scores


class Writes(Embeds, Protocol):
    """An embedder whose model can also write (`bgt_core.Embedder`)."""

    model: nn.Module
    tokenizer: Tokenizer


@dataclass(frozen=True)
class Beam:
    """The `size` best hypotheses, ranked by log-probability a piece (released code: 5)."""

    size: int = 5

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadInput(f"A beam of {self.size} holds nothing; use 1 or more.", 2)


@dataclass(frozen=True)
class Sample:
    """Draws from the `top_p` most probable mass at a temperature."""

    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise BadInput(
                f"Temperature {self.temperature} must be above 0; for the most probable piece use a beam of 1.", 2
            )
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top_p {self.top_p} is a share of probability, above 0 and up to 1.", 2)


GREEDY = Beam(1)

Search = Beam | Sample


def transfer(
    bgt: Writes,
    sources: Sequence[str],
    styles: Sequence[str],
    *,
    lang: str,
    search: Search = Beam(),
    seed: int = 0,
    max_length: int = 60,
) -> list[str]:
    """The meaning of each source in the manner of the style beside it.

    `lang` is the language of the styles and of what is written; sources may be in any language of the
    model. The decoder reads [language mean of the style ; semantic mean of the source], the same vector
    it is trained on (the released code decodes from another, untrained one). The same seed gives the
    same text. `max_length` is in pieces. Raises BadInput for unequal counts or an unknown language.
    """
    if len(sources) != len(styles):
        raise BadInput(f"{len(sources)} sources but {len(styles)} styles; each source needs one style.", 2)
    if max_length < 1:
        raise BadInput(f"max_length {max_length} must be at least 1 piece.", 2)
    if not sources:
        return []
    device = next(bgt.model.parameters()).device
    manner = torch.from_numpy(bgt.embed(styles, lang=lang, latent=LANGUAGE)).to(device)
    meaning = torch.from_numpy(bgt.embed(sources, lang=lang, latent=SEMANTIC)).to(device)
    latent = bgt.model.join(manner, meaning)  # (B, L_lang + L)
    generator = torch.Generator(device).manual_seed(seed)
    written: list[list[int]] = []
    with torch.inference_mode():
        for part in latent.split(AT_ONCE):
            written += write(bgt.model.decoders[lang], part, search, max_length, generator)
    return bgt.tokenizer.decode(written)


def write(
    decoder: Decoder, latent: Tensor, search: Search, max_length: int, generator: torch.Generator
) -> list[list[int]]:
    """Piece ids for each latent (B, L), EOS left out."""
    if isinstance(search, Sample):
        return sample(decoder, latent, search, max_length, generator)
    return beam(decoder, latent, search.size, max_length)


def next_scores(decoder: Decoder, pieces: Tensor, position: int, latent: Tensor, cache: list) -> Tensor:
    """Log-probabilities of the next piece, (B, V); a sentence has at least one piece before EOS."""
    logits = decoder.step(pieces, position, latent, cache).float()
    logits[:, NEVER] = -torch.inf
    if position == 0:
        logits[:, EOS] = -torch.inf
    return logits.log_softmax(-1)


def sample(
    decoder: Decoder, latent: Tensor, how: Sample, max_length: int, generator: torch.Generator
) -> list[list[int]]:
    """Ancestral sampling, nucleus-limited (Holtzman et al. 2020)."""
    pieces = torch.full((len(latent),), EOS, device=latent.device)
    cache, written, done = decoder.start(), [], torch.zeros(len(latent), dtype=torch.bool, device=latent.device)
    for position in range(max_length):
        scores = next_scores(decoder, pieces, position, latent, cache) / how.temperature
        chances, order = scores.softmax(-1).sort(-1, descending=True)
        outside = chances.cumsum(-1) - chances >= how.top_p  # the first piece is always inside
        drawn = torch.multinomial(chances.masked_fill(outside, 0.0), 1, generator=generator)  # (B, 1)
        pieces = order.gather(1, drawn).squeeze(1).masked_fill(done, EOS)
        written.append(pieces)
        done = done | (pieces == EOS)
        if done.all():
            break
    return [until_end(row) for row in torch.stack(written, 1).tolist()]


def beam(decoder: Decoder, latent: Tensor, size: int, max_length: int) -> list[list[int]]:
    """Beam search over a batch. A finished hypothesis keeps its place at its final score; the best by
    mean log-probability a piece, EOS counted, is returned."""
    count, device = len(latent), latent.device
    latent = latent.repeat_interleave(size, dim=0)  # (B * size, L)
    pieces = torch.full((count * size,), EOS, device=device)
    written = torch.zeros((count, size, 0), dtype=torch.long, device=device)
    totals = torch.full((count, size), -torch.inf, device=device)
    totals[:, 0] = 0.0  # all hypotheses start equal: only one may branch
    lengths = torch.zeros((count, size), device=device)
    done = torch.zeros((count, size), dtype=torch.bool, device=device)
    cache = decoder.start()
    base = torch.arange(count, device=device)[:, None] * size
    for position in range(max_length):
        scores = next_scores(decoder, pieces, position, latent, cache).view(count, size, -1)
        waits = torch.full_like(scores[0, 0], -torch.inf)
        waits[EOS] = 0.0  # a finished hypothesis repeats EOS at no cost
        scores = torch.where(done[:, :, None], waits, scores)
        vocab = scores.shape[-1]
        totals, best = (totals[:, :, None] + scores).view(count, -1).topk(size)  # (B, size)
        parent, piece = best // vocab, best % vocab
        done, lengths = done.gather(1, parent), lengths.gather(1, parent)
        lengths = lengths + (~done).float()
        done = done | (piece == EOS)
        written = torch.cat([written.gather(1, parent[:, :, None].expand_as(written)), piece[:, :, None]], dim=2)
        if done.all():
            break
        rows = (base + parent).view(-1)
        for past in cache:
            past.select(rows)
        pieces = piece.view(-1)
    winner = (totals / lengths).argmax(1)
    return [until_end(row) for row in written[torch.arange(count, device=device), winner].tolist()]


def until_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(EOS)] if EOS in ids else ids
