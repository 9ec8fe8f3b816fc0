"""What all models of this family share: encoders by latent and language, and cosines of posterior means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from torch import Tensor, nn

from bgt_core.capabilities import Decoder
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC, Posterior, Similarity
from bgt_core.nets.encoders import NoLatent
from bgt_core.nets.output import LanguageOutput
from bgt_core.vectors.compare import COSINE


class LatentModel(nn.Module):
    """Encoders for `langs`: `encoders` holds one under "semantic", for all of them, and may hold one under "syntactic",
    for all of them too, and one under each language, for what is that language's own. Vectors are posterior means,
    compared by cosine."""

    similarity: Similarity = COSINE

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
        """What reads that latent from sentences of that language: Tokens -> Posterior."""
        return self.encoders[lang if latent == LANGUAGE else latent]

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token vectors that the semantic encoder reads first, (V, H)."""
        return next(part for part in self.encoders[SEMANTIC].modules() if isinstance(part, nn.Embedding))

    def restrict(self, occurs: Callable[[str], Tensor]) -> None:
        """Let decoders that can score a part of the vocabulary score what occurs in their language's text.

        Args:
            occurs: Of a language, whether each token occurs in its training text, (V,) bool.
        """
        for layer in self.modules():
            if isinstance(layer, LanguageOutput):
                layer.restrict(occurs(layer.lang))

    def vectors(self, posterior: Posterior) -> Tensor:
        """The posterior mean, (B, L)."""
        return posterior.mean


class WritingModel(LatentModel):
    """A model with a decoder for each of its languages, `decoders`, that writes from its latents."""

    decoders: nn.ModuleDict

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages that it writes."""
        return self.langs

    def decoder(self, lang: str) -> Decoder:
        """p(sentence | latents) of that language."""
        return cast(Decoder, self.decoders[lang])
