"""Generate sentences from latents, or compute their likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bgt_core.contracts import SEMANTIC, Prediction, Tokens
from bgt_core.data.columns import known_lang
from bgt_core.errors import UsageError
from bgt_core.generation.options import Search
from bgt_core.generation.search import AT_ONCE, SentenceWriter, decode, generative
from bgt_core.nets.output import SentencePrediction, unknown


@dataclass(frozen=True)
class Writer:
    """An embedder with a decoder, and its search options. Raises UsageError for a model without a decoder."""

    bgt: SentenceWriter
    search: Search
    max_length: int = 60  # tokens

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
        predictions = self._predictions(latents, self.bgt.tokenizer.encode(sentences), lang)
        return -np.array([nats for prediction in predictions for nats in prediction.nll()[1].tolist()])

    def tokens(self, sentences: Sequence[str]) -> list[list[str]]:
        """The texts of the tokens of N sentences, EOS left out; one that begins a word begins with a space."""
        texts = self.bgt.tokenizer.texts()
        return [[texts[token] for token in ids[:-1]] for ids in self.bgt.tokenizer.encode(sentences)]

    def token_nats(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> list[np.ndarray]:
        """-log p(token | tokens before it, latents) in nats of each token of N sentences of `lang`, EOS included:
        N arrays (T,).

        Raises:
            UsageError: A decoder that does not predict one token after the other.
        """
        ids = self.bgt.tokenizer.encode(sentences)
        nats: list[float] = []
        for prediction in self._predictions(latents, ids, lang):
            if not isinstance(prediction, SentencePrediction):
                raise UsageError("This model's decoder does not predict one token after the other.")
            nats += prediction.token_nll().tolist()
        return np.split(np.array(nats), np.cumsum([len(sentence) for sentence in ids])[:-1])

    def count_unknown(self, sentences: Sequence[str], *, lang: str) -> tuple[int, int]:
        """Count the tokens of sentences of `lang`, EOS included, that cost what the unknown token does; and all tokens.

        The former never occurred in that language in training, or are characters without a token.
        """
        ids = torch.tensor([token for sentence in self.bgt.tokenizer.encode(sentences) for token in sentence])
        layer = getattr(generative(self.bgt).decoder(lang), "layer", None)
        device = next(generative(self.bgt).parameters()).device
        return int(unknown(layer, ids.to(device)).sum()), len(ids)

    def prior_mean(self, latent: str, like: np.ndarray) -> np.ndarray:
        """The mean of a latent's prior, in the shape of its vectors (N, L)."""
        model = generative(self.bgt)
        device = next(model.parameters()).device
        return model.prior_mean(latent, torch.tensor(like, device=device)).cpu().numpy()

    def _predictions(
        self, latents: Mapping[str, np.ndarray], ids: Sequence[Sequence[int]], lang: str
    ) -> Iterator[Prediction]:
        """The decoder's predictions of sentences with these token ids, `AT_ONCE` at a time."""
        model, lang = generative(self.bgt), known_lang(lang, self.bgt.langs, "this model")
        device, decoder = next(model.parameters()).device, model.decoder(lang)
        for start in range(0, len(ids), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            with torch.no_grad():
                tensors = {name: torch.tensor(rows[part], device=device) for name, rows in latents.items()}
                target = Tokens.pad(ids[part], lang).to(device)
                yield decoder("reconstruct", lang, model.join(tensors), target)
