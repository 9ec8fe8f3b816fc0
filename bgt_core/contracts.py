"""The nouns of this package; read this first.

Data flows one way, from text to numbers:

    text -> Tokens -> Batch -> Posterior / Outputs -> { Loss | vectors | text }

Shape letters, here and everywhere: B sentences in a batch, T tokens of the longest of them, N real tokens
of all of them, H hidden units, L latent units, V pieces of the vocabulary. ExternalEncoder a batch: N sentences, D
units of any vector.

Languages are keys ("en", "fr"), never "source" and "target": two languages are the paper's model,
more languages are the same code with more keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bgt_core.errors import BgtError as BgtError  # part of the nouns; lives alone so that `--help` is quick

if TYPE_CHECKING:  # the processes that prepare text import this file, and need no torch
    import torch
    from torch import Tensor

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # piece ids, fixed when a tokenizer is trained

SEMANTIC, LANGUAGE = "semantic", "language"
LATENTS = (SEMANTIC, LANGUAGE)  # what users choose between: `--latent semantic|language`


@dataclass(frozen=True)
class Tokens:
    """One side of a batch: right-padded piece ids of B sentences, each ending in EOS."""

    ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True at real pieces (EOS included)
    lang: str
    places: Tensor = None  # (N,) int64, where mask.flatten() is True; found here, so that no GPU has to be asked

    def __post_init__(self) -> None:
        if self.places is None:
            object.__setattr__(self, "places", self.mask.flatten().nonzero().squeeze(1))

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int]], lang: str) -> Tokens:
        """Piece ids of B sentences -> one padded side, (B, T)."""
        import torch

        ids = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        padded = torch.from_numpy(ids)
        return cls(padded, padded != PAD, lang)

    def to(self, device: torch.device | str) -> Tokens:
        """The same side on another device; the copy does not block when the memory is pinned."""
        ids, mask, places = (part.to(device, non_blocking=True) for part in (self.ids, self.mask, self.places))
        return Tokens(ids, mask, self.lang, places)

    def pin(self) -> Tokens:
        """The same side in memory that a GPU copies from on its own."""
        return Tokens(self.ids.pin_memory(), self.mask.pin_memory(), self.lang, self.places.pin_memory())


@dataclass(frozen=True)
class Batch:
    """B translations: one side a language, and the language that explains both."""

    sides: Mapping[str, Tokens]
    anchor: str  # its sentence gives the semantic latent of the whole batch (paper, sec. 3)
    negatives: Mapping[str, Tokens] = field(default_factory=dict)  # B sentences a side: no translation, but near to one

    def __len__(self) -> int:
        return len(next(iter(self.sides.values())).ids)

    def other(self, lang: str) -> str:
        """The language that `lang` is translated from."""
        return next(key for key in self.sides if key != lang)

    def to(self, device: torch.device | str) -> Batch:
        return self._each(lambda side: side.to(device))

    def pin(self) -> Batch:
        return self._each(Tokens.pin)

    def _each(self, change: Callable[[Tokens], Tokens]) -> Batch:
        sides, negatives = ({lang: change(side) for lang, side in of.items()} for of in (self.sides, self.negatives))
        return Batch(sides, self.anchor, negatives)


class Posterior(Protocol):
    """q(z | sentence) of B sentences."""

    mean: Tensor  # (B, L)

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """A reparameterised draw, (B, L)."""
        ...

    def kl(self) -> Tensor:
        """KL to the prior in nats, summed over latent units, (B,)."""
        ...

    def log_ratio(self, z: Tensor) -> Tensor:
        """log q(z | sentence) - log p(z) in nats of one z a sentence, (B, L) -> (B,); `kl` is its mean."""
        ...


class Read(Protocol):
    """How a model that decodes from posteriors takes a latent from each: a draw, the mean."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """(B, L)."""
        ...


class OutputLayer(Protocol):
    """The last layer of a decoder: features and latent to scores of the next piece."""

    def share(self, latent: Tensor) -> Tensor:
        """What the latent adds to the scores of every piece of its sentence, made once: (B, L) -> (B, any)."""
        ...

    def logits(self, features: Tensor, share: Tensor) -> Tensor:
        """(N, H) and the share of each row's sentence -> (N, V)."""
        ...

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """(N, H), (B, L) -> (loss, nats): the smoothed loss summed over the batch, a scalar with gradient, and each
        sentence's plain negative log-likelihood without one, (B,)."""
        ...


@dataclass(frozen=True)
class Prediction:
    """What a decoder says of the N real pieces of `target`: features, output layer and target stay
    together, so that logits never meet the wrong side; full logits are made on request only."""

    name: str  # "reconstruct/en", "translate/fr": the language is the predicted one
    features: Tensor  # (N, H), in the order of target.ids[target.mask]
    latent: Tensor  # (B, L)
    layer: OutputLayer
    target: Tokens

    def logits(self) -> Tensor:
        """Scores of the whole vocabulary for each real piece, (N, V)."""
        rows = self.target.places // self.target.ids.shape[1]
        return self.layer.logits(self.features, self.layer.share(self.latent)[rows])

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(loss, nats): see `OutputLayer.nll`."""
        return self.layer.nll(self.features, self.latent, self.target, smoothing)


@dataclass(frozen=True)
class Outputs:
    """What a model makes of a batch; objectives read nothing else."""

    meaning: Mapping[str, Posterior]  # the semantic posterior of each side
    posteriors: Mapping[str, Posterior]  # those that pay KL: the anchor's meaning, each side's own
    predictions: Sequence[Prediction] = field(default_factory=list)
    negatives: Mapping[str, Posterior] = field(default_factory=dict)  # what the batch's negatives mean


@dataclass(frozen=True)
class Loss:
    """Sums over the sentence pairs of a batch; the training loop divides by the pairs of a whole
    update, so that accumulation over uneven micro-batches changes nothing."""

    total: Tensor  # scalar with gradient, what is minimised
    terms: Mapping[str, Tensor]  # scalars without gradient, nats: "reconstruct/en", "kl/semantic"


class Objective(Protocol):
    """Reads `Outputs`; holds no model and no parameters."""

    def __call__(self, out: Outputs, step: int) -> Loss: ...


class SentenceEncoder(Protocol):
    """All that STS, probes and the app see of a model (`bgt_core.Embedder`, or what `adapters.open_encoder` makes).

    No `langs` means any language: encoders of others do not ask for one. They mostly have one latent, "semantic".
    """

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    @property
    def fingerprint(self) -> str:
        """What decides the vectors, in a line; "" where that is unknown, and then nothing may be reused."""
        ...

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given."""
        ...

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Of each row of left (N, D) with each row of right (M, D): (N, M)."""
        ...

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Of each row of left (N, D) with the same row of right (N, D): (N,)."""
        ...
