"""What some models can do besides being trained and embedding sentences, and the decoders that they do it with.

Others ask `isinstance(model, GenerativeModel)`, never for a class of models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bgt_core.contracts import Model, Prediction, Role, Tokens

if TYPE_CHECKING:  # commands import this without torch
    from torch import Tensor


@runtime_checkable
class GenerativeModel(Model, Protocol):
    """A model that writes sentences from its latents."""

    @property
    def writes(self) -> Sequence[str]:
        """The languages that it writes; empty if its decoders score sentences but do not order their words."""

    def decoder(self, lang: str) -> Decoder:
        """What reconstructs sentences of that language."""

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """What such a decoder reads, (B, any), from each latent's (B, L)."""


@runtime_checkable
class TranslationModel(Model, Protocol):
    """A model that writes translations, from all states of its encoder."""

    @property
    def translates(self) -> Sequence[str]:
        """The languages that it translates into."""

    def states(self, side: Tokens) -> Any:
        """What its decoders read of B sentences."""

    def decoder(self, lang: str) -> Decoder:
        """What writes that language, from `states`."""


@runtime_checkable
class DuplicateModel(Model, Protocol):
    """A model that says whether two sentences mean the same."""

    def duplicate_probability(self, left: Any, right: Any) -> Tensor:
        """That they do, from their semantic posteriors, (B, L) each: (B,) float64."""


@runtime_checkable
class ReferenceModel(Model, Protocol):
    """A model that says whether a person wrote a sentence."""

    def reference_probability(self, vectors: Tensor) -> Tensor:
        """That a person did, from the sentences' vectors, (N, L): (N,) float64."""


class Decoder(Protocol):
    """p(sentence | context), for training and, one piece at a time, for search; the context of B sentences is a latent
    (B, L), or where the decoder attends, the states of an encoder."""

    def __call__(self, role: Role, column: str, context: Any, target: Tokens, /) -> Prediction:
        """What it says of the target when it reads the context of B sentences."""

    def start(self, context: Any, /) -> DecoderState:
        """Before the first piece of each of B sentences, one hypothesis each."""

    def step(self, pieces: Tensor, state: Any) -> Tensor:
        """The last piece of each hypothesis (B, n) -> scores of the next one, (B, n, V); `state` is what `start`
        returned, and moves on."""


class DecoderState(Protocol):
    """What a decoder keeps of the hypotheses of a search."""

    position: int  # pieces read so far

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i of a sentence continues its hypothesis parents[i], (B, n)."""

    def select(self, rows: Tensor) -> None:
        """Only these sentences stay, (b,)."""
