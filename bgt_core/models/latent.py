"""The base classes of all models: `LatentModel` has encoders, and `WritingModel` also has decoders."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, Decoder, Posterior
from bgt_core.nets.encoders import NoLatent
from bgt_core.nets.output import LanguageOutput


class LatentModel(nn.Module):
    """A model that encodes sentences of the languages `langs`. Its vectors are posterior means, compared by cosine.

    `encoders` maps "semantic" to an encoder for all languages. It may also map "syntactic" to an encoder for all
    languages, and each language code to the encoder of that language's latent.
    """

    def __init__(self, langs: Sequence[str], encoders: Mapping[str, nn.Module]):
        super().__init__()
        self.langs = tuple(langs)
        self.encoders = nn.ModuleDict(encoders)
        others = {SYNTACTIC: [encoders.get(SYNTACTIC)], LANGUAGE: [encoders.get(lang) for lang in langs]}
        present = [
            latent
            for latent, needed in others.items()
            if not any(encoder is None or isinstance(encoder, NoLatent) for encoder in needed)
        ]
        self.latents: tuple[str, ...] = (SEMANTIC, *present)

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of a latent for sentences of a language: Tokens -> Posterior."""
        return self.encoders[lang if latent == LANGUAGE else latent]

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token table of the semantic encoder, (V, H)."""
        return next(part for part in self.encoders[SEMANTIC].modules() if isinstance(part, nn.Embedding))

    def restrict(self, occurs: Callable[[str], Tensor]) -> None:
        """Restrict the output layers of type `LanguageOutput` to the tokens of their languages.

        Args:
            occurs: Maps a language to (V,) bool, True for each token that occurs in the language's training text.
        """
        for layer in self.modules():
            if isinstance(layer, LanguageOutput):
                layer.restrict(occurs(layer.lang))

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the posterior's means, (B, L)."""
        return posterior.mean


class WritingModel(LatentModel):
    """A model with a decoder for each language, `decoders`, which generates sentences from latents."""

    decoders: nn.ModuleDict

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages in which the model generates sentences."""
        return self.langs

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of a latent's prior, in the shape of `like` (N, L). `join` gets this mean if no sentence is
        given for the latent."""
        return torch.zeros_like(like)

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of a language, p(sentence | latents)."""
        return cast(Decoder, self.decoders[lang])


def cosine_to_targets(means: Tensor, targets: Tensor) -> Tensor:
    """Return the cosines of row i of `means` and row i of `targets`: (B, D), (B, D) -> (B,). Targets may be very large
    or very small."""
    exponents = torch.frexp(targets.abs().amax(-1, keepdim=True)).exponent.clamp(-126, 126)
    return F.cosine_similarity(means.float(), torch.ldexp(targets, -exponents), dim=-1)
