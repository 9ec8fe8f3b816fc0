"""The interfaces of models with more capabilities than embedding, such as generation, and of their decoders.

To find out whether a model can generate, test `isinstance(model, GenerativeModel)`, not the model's class.
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
        """The languages of generated text; empty if the decoders predict words without their order."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder that reconstructs sentences of `lang`."""

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Combine latents, (B, L) each, into the input of a decoder, (B, D)."""

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of the prior of `latent`, repeated in the shape of `like`, (B, L)."""


@runtime_checkable
class CorrectingModel(GenerativeModel, Protocol):
    """A model that can correct a draft of a sentence, given the sentence's latents."""

    def drafted(self, latents: Mapping[str, Tensor], drafts: Tokens, of_drafts: Tensor) -> Any:
        """Combine latents, (B, L) each, drafts (B, T), and the semantic vectors of the drafts (B, L) into the input of
        a decoder."""


@runtime_checkable
class TranslationModel(Model, Protocol):
    """A model that translates. Its decoder attends to all states of its encoder."""

    @property
    def translates(self) -> Sequence[str]:
        """The languages that it translates into."""

    def states(self, side: Tokens) -> Any:
        """Encode B sentences into the states that a decoder attends to."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder of `lang`, whose input is `states`."""


@runtime_checkable
class DuplicateModel(Model, Protocol):
    """A model that predicts whether two sentences mean the same."""

    def duplicate_probability(self, left: Any, right: Any) -> Tensor:
        """Return the probability that sentences mean the same, given semantic posteriors, (B, L) each: (B,) float64."""


@runtime_checkable
class ReferenceModel(Model, Protocol):
    """A model that predicts whether a person, not a machine, wrote a sentence."""

    def reference_probability(self, vectors: Tensor) -> Tensor:
        """Return the probability that a person wrote each sentence, given their vectors, (N, L): (N,) float64."""


@runtime_checkable
class VectorModel(Model, Protocol):
    """A model whose semantic vectors come from another encoder."""

    @property
    def stored(self) -> StoredLatent:
        """The name of this encoder, and statistics of its vectors."""


class StoredLatent(Protocol):
    """A semantic latent that another encoder computes."""

    encoder: str  # the name of the encoder, as for `--model`
    fingerprint: str  # the identity of the encoder when the model was trained; "" if unknown
    mean: Tensor  # mean vector of the training text, (D,)

    def fit(self, vectors: Tensor) -> None:
        """Compute mean and scale from vectors of training text, (N, D)."""


class Decoder(Protocol):
    """p(sentence | context). In training it predicts whole sentences, in a search one token at a time. The context of B
    sentences is a latent (B, L), or the states of an encoder for a decoder with attention."""

    def __call__(self, role: Role, column: str, context: Any, target: Tokens, /) -> Prediction:
        """Predict the target from the context of B sentences."""

    def start(self, context: Any, /) -> DecoderState:
        """Return the state before the first token of each of B sentences, one hypothesis each."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Return logits of the next token, (B, n, V), given the last token of each of n hypotheses, (B, n). Updates
        `state`, which comes from `start`."""


class DecoderState(Protocol):
    """A decoder's state for the hypotheses of a search."""

    position: int  # number of tokens so far

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i of a sentence continue its hypothesis parents[i], (B, n)."""

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences, (b,)."""
