"""Generate sentences from latents, or compute their likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bgt_core.contracts import SEMANTIC, Tokens
from bgt_core.generation.options import Search
from bgt_core.generation.search import AT_ONCE, SentenceWriter, decode, generative


@dataclass(frozen=True)
class Writer:
    """An embedder with a decoder, and its search options. Raises UsageError for a model without a decoder."""

    bgt: SentenceWriter
    search: Search
    max_length: int = 60  # pieces

    def __post_init__(self) -> None:
        generative(self.bgt)

    @property
    def langs(self) -> Sequence[str]:
        return self.bgt.langs

    @property
    def latents(self) -> Sequence[str]:
        return self.bgt.latents

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed sentences by the model: (N, D) float32."""
        return self.bgt.embed(sentences, lang=lang, latent=latent)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare vectors by the model: (N, D), (M, D) -> (N, M)."""
        return self.bgt.similarity(left, right)

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        """Generate a sentence of `lang` for each row of the latents, (N, L) each; errors as
        `generation.search.decode`."""
        return decode(self.bgt, latents, lang=lang, search=self.search, max_length=self.max_length)

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        """log p(sentence | latents) in nats of N sentences of `lang`, one row of the latents each: (N,) float64."""
        model, ids = generative(self.bgt), self.bgt.tokenizer.encode(sentences)
        device, decoder = next(model.parameters()).device, model.decoder(lang)
        nats: list[float] = []
        with torch.no_grad():
            for start in range(0, len(ids), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                tensors = {name: torch.tensor(rows[part], device=device) for name, rows in latents.items()}
                target = Tokens.pad(ids[part], lang).to(device)
                nats += decoder("reconstruct", lang, model.join(tensors), target).nll()[1].tolist()
        return -np.array(nats)
