"""The interfaces of models that do more than train and embed, and of their decoders.

To find out whether a model generates, test `isinstance(model, GenerativeModel)`, never the model's class.
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
        """Combine latents, (B, L) each, into the input of a decoder, (B, any)."""

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of that latent's prior, repeated in the shape of `like`, (B, L)."""


@runtime_checkable
class CorrectingModel(GenerativeModel, Protocol):
    """A model that can correct a draft of a sentence, given the sentence's latents."""

    def drafted(self, latents: Mapping[str, Tensor], drafts: Tokens, of_drafts: Tensor) -> Any:
        """Combine latents as for `join`, drafts (B, T), and the drafts' semantic vectors (B, L) into the input of a
        decoder."""


@runtime_checkable
class TranslationModel(Model, Protocol):
    """A model that translates with attention to all states of its encoder."""

    @property
    def translates(self) -> Sequence[str]:
        """The languages that it translates into."""

    def states(self, side: Tokens) -> Any:
        """Encode B sentences as the input of its decoders."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of that language, which reads `states`."""


@runtime_checkable
class DuplicateModel(Model, Protocol):
    """A model that judges whether two sentences mean the same."""

    def duplicate_probability(self, left: Any, right: Any) -> Tensor:
        """Return the probability of the same meaning, given semantic posteriors, (B, L) each: (B,) float64."""


@runtime_checkable
class ReferenceModel(Model, Protocol):
    """A model that judges whether a person wrote a sentence."""

    def reference_probability(self, vectors: Tensor) -> Tensor:
        """Return the probability that a person wrote each sentence, given their vectors, (N, L): (N,) float64."""


@runtime_checkable
class VectorModel(Model, Protocol):
    """A model whose semantic latent is the vector of another encoder."""

    @property
    def stored(self) -> StoredLatent:
        """The name of the encoder, and statistics of its vectors."""


class StoredLatent(Protocol):
    """A semantic latent that another encoder computes, in place of a semantic encoder."""

    encoder: str  # its name, as `--model` takes it
    fingerprint: str  # its identity when the model was trained; "" if unknown
    mean: Tensor  # of the vectors of training text, (D,)

    def fit(self, vectors: Tensor) -> None:
        """Compute mean and scale from vectors of training text, (N, D)."""


class Decoder(Protocol):
    """p(sentence | context). In training it predicts whole sentences, in a search one token at a time. The context of B
    sentences is a latent (B, L), or for a decoder with attention, the states of an encoder."""

    def __call__(self, role: Role, column: str, context: Any, target: Tokens, /) -> Prediction:
        """Predict the target from the context of B sentences."""

    def start(self, context: Any, /) -> DecoderState:
        """Return the state before the first token of each of B sentences, one hypothesis each."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Return scores of the next token, (B, n, V), after the last token of each hypothesis, (B, n). Updates `state`,
        which `start` returned."""


class DecoderState(Protocol):
    """A decoder's state for the hypotheses of a search."""

    position: int  # tokens read so far

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue its hypothesis parents[i], (B, n)."""

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences, (b,)."""
