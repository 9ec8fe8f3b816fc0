"""The base classes of all models: encoders by latent and language, and posterior means as vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.capabilities import Decoder
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, Posterior
from bgt_core.nets.encoders import NoLatent
from bgt_core.nets.output import LanguageOutput


class LatentModel(nn.Module):
    """A model for `langs`. `encoders` has one encoder for all languages under "semantic"; it may also have one for all
    under "syntactic", and one per language under its code. Vectors are posterior means, compared by cosine."""

    def __init__(self, langs: Sequence[str], encoders: Mapping[str, nn.Module]):
        super().__init__()
        self.langs = tuple(langs)
        self.encoders = nn.ModuleDict(encoders)
        own = {SYNTACTIC: [encoders.get(SYNTACTIC)], LANGUAGE: [encoders.get(lang) for lang in langs]}
        present = [
            latent
            for latent, those in own.items()
            if not any(encoder is None or isinstance(encoder, NoLatent) for encoder in those)
        ]
        self.latents: tuple[str, ...] = (SEMANTIC, *present)

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of that latent for sentences of that language: Tokens -> Posterior."""
        return self.encoders[lang if latent == LANGUAGE else latent]

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token table of the semantic encoder, (V, H)."""
        return next(part for part in self.encoders[SEMANTIC].modules() if isinstance(part, nn.Embedding))

    def restrict(self, occurs: Callable[[str], Tensor]) -> None:
        """Restrict decoders that support it to the tokens that occur in their language's text.

        Args:
            occurs: For a language, whether each token occurs in its training text, (V,) bool.
        """
        for layer in self.modules():
            if isinstance(layer, LanguageOutput):
                layer.restrict(occurs(layer.lang))

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the posterior means, (B, L)."""
        return posterior.mean


class WritingModel(LatentModel):
    """A model with a decoder for each of its languages, `decoders`, that generates from its latents."""

    decoders: nn.ModuleDict

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages that it generates."""
        return self.langs

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of a latent's prior, as an input of `join`, in the shape of `like` (N, L). It replaces the
        latent of an unknown sentence."""
        return torch.zeros_like(like)

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of that language, p(sentence | latents)."""
        return cast(Decoder, self.decoders[lang])


def cosine_to_targets(means: Tensor, targets: Tensor) -> Tensor:
    """Return the cosine of each row of `means` and `targets`, vectors of any scale: (B, D), (B, D) -> (B,)."""
    exponents = torch.frexp(targets.abs().amax(-1, keepdim=True)).exponent.clamp(-126, 126)
    return F.cosine_similarity(means.float(), torch.ldexp(targets, -exponents), dim=-1)
