"""What some models can do beyond training and embedding, and their decoders.

Test `isinstance(model, GenerativeModel)`, never for a class of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bgt_core.contracts import Model, Prediction, Role, Tokens

if TYPE_CHECKING:  # commands import this without torch
    from torch import Tensor


@runtime_checkable
class GenerativeModel(Model, Protocol):
    """A model that generates sentences from its latents."""

    @property
    def writes(self) -> Sequence[str]:
        """The languages that it generates; empty if its decoders score sentences but do not order their words."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder that reconstructs sentences of that language."""

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Combine each latent's (B, L) into the input of such a decoder, (B, any)."""

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """The mean of that latent's prior, repeated in the shape of `like`, (B, L)."""


@runtime_checkable
class CorrectingModel(GenerativeModel, Protocol):
    """A model that can write a sentence again from its latents and a draft."""

    def drafted(self, latents: Mapping[str, Tensor], drafts: Tokens, of_drafts: Tensor) -> Any:
        """The input of its decoders, from latents as `join` takes them, drafts (B, T), and the drafts' semantic vectors
        (B, L)."""


@runtime_checkable
class TranslationModel(Model, Protocol):
    """A model that translates, from all states of its encoder."""

    @property
    def translates(self) -> Sequence[str]:
        """The languages that it translates into."""

    def states(self, side: Tokens) -> Any:
        """The input of its decoders for B sentences."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of that language, which reads `states`."""


@runtime_checkable
class DuplicateModel(Model, Protocol):
    """A model that judges whether two sentences mean the same."""

    def duplicate_probability(self, left: Any, right: Any) -> Tensor:
        """The probability that they do, from their semantic posteriors, (B, L) each: (B,) float64."""


@runtime_checkable
class ReferenceModel(Model, Protocol):
    """A model that judges whether a person wrote a sentence."""

    def reference_probability(self, vectors: Tensor) -> Tensor:
        """The probability that a person did, from the sentences' vectors, (N, L): (N,) float64."""


@runtime_checkable
class VectorModel(Model, Protocol):
    """A model whose semantic latent is the vector of another encoder."""

    @property
    def stored(self) -> StoredLatent:
        """What it knows of those vectors."""


class StoredLatent(Protocol):
    """Vectors of another encoder in place of a semantic encoder."""

    encoder: str  # as `--model` names it
    fingerprint: str  # its identity in training; "" if unknown
    mean: Tensor  # of the vectors of training text, (D,)

    def fit(self, vectors: Tensor) -> None:
        """Take mean and scale from vectors of training text, (N, D)."""


class Decoder(Protocol):
    """p(sentence | context), for training and, one token at a time, for search. The context of B sentences is a latent
    (B, L), or for a decoder with attention, the states of an encoder."""

    def __call__(self, role: Role, column: str, context: Any, target: Tokens, /) -> Prediction:
        """Predict the target from the context of B sentences."""

    def start(self, context: Any, /) -> DecoderState:
        """Return the state before the first token of each of B sentences, one hypothesis each."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Score the next token, (B, n, V), after the last token of each hypothesis (B, n); updates `state`, which
        `start` returned."""


class DecoderState(Protocol):
    """A decoder's state for the hypotheses of a search."""

    position: int  # tokens read so far

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue its hypothesis parents[i], (B, n)."""

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences, (b,)."""
