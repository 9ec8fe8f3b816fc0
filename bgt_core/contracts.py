"""The data types of this package; read this first.

Data flows one way, from text to numbers:

    text -> Tokens -> Batch -> Posterior / Outputs -> Loss     in training
    text -> Tokens -> Posterior -> { vectors | text }          in use

Shape letters, here and everywhere: B sentences in a batch, T tokens in its longest sentence, N tokens in the whole
batch without padding, H hidden units, L latent units, V tokens in the vocabulary. Outside a batch, N is the number of
sentences and D the size of a vector.

A side of a batch is a *column* of the data, and has a language. Columns are named by language ("en", "fr") if
all languages differ, and otherwise have any names ("a", "b"). No column is only a "source" or a "target": each column
is predicted from another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:  # processes that prepare text import this module without torch
    import torch
    from torch import Tensor, nn

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # token ids, fixed when a tokenizer is trained; decoders start from EOS, not BOS

SEMANTIC, LANGUAGE, SYNTACTIC = "semantic", "language", "syntactic"  # latents, as in `--latent semantic`
Role = Literal["reconstruct", "translate", "recombine", "paraphrase", "position", "auxiliary"]


@dataclass(frozen=True, eq=False)
class Tokens:
    """One side of a batch: right-padded token ids of B sentences, each ending in EOS."""

    ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True at real tokens (EOS included)
    lang: str
    # (N,) int64, indices of the real tokens in mask.flatten(); computed on the CPU, as nonzero() would wait for a GPU
    flat_index: Tensor

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, lang: str) -> Tokens:
        """Create a side from ids and mask, both (B, T)."""
        return cls(ids, mask, lang, mask.flatten().nonzero().squeeze(1))

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int] | np.ndarray], lang: str, length: int = 0) -> Tokens:
        """Create a side from the token ids of B sentences, padded to (B, T), with T at least `length`."""
        import torch

        ids = np.full((len(sentences), max(length, *map(len, sentences))), PAD, dtype=np.int64)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        padded = torch.from_numpy(ids)
        return cls.of(padded, padded != PAD, lang)

    def map(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """Apply a function to each tensor, for example a copy to another device."""
        return Tokens(change(self.ids), change(self.mask), self.lang, change(self.flat_index))

    def to(self, device: torch.device | str) -> Tokens:
        """Copy the side to another device, asynchronously if its memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(frozen=True, eq=False)
class Batch:
    """B rows of a corpus: one `Tokens` per column, and the anchor column, whose latent all columns share."""

    sides: Mapping[str, Tokens]
    anchor: str  # the column that provides the semantic latent of the whole batch (paper, sec. 3)
    shift: int = 1  # column i is predicted from column i + shift (mod columns); it changes from step to step
    negatives: Mapping[str, Tokens] = field(default_factory=dict)  # one hard negative per row and column
    # sentences of some columns, changed to the same words with another meaning
    altered: Mapping[str, Tokens] = field(default_factory=dict)
    labels: Tensor | None = None  # (B,) float32, for labelled rows
    targets: Tensor | None = None  # (B, D) float32: vectors of another encoder, the teacher, for these rows

    def __len__(self) -> int:
        return len(next(iter(self.sides.values())).ids)

    def source(self, column: str) -> str:
        """Return the column from which `column` is predicted. With two columns it is the other one."""
        columns = list(self.sides)
        return columns[(columns.index(column) + self.shift) % len(columns)]

    def to(self, device: torch.device | str) -> Batch:
        """Copy the batch to another device, asynchronously if its memory is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> Batch:
        """Copy the batch to pinned memory, from which copies to a GPU are asynchronous."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return replace(
            self,
            sides={column: side.map(change) for column, side in self.sides.items()},
            negatives={column: side.map(change) for column, side in self.negatives.items()},
            altered={column: side.map(change) for column, side in self.altered.items()},
            labels=None if self.labels is None else change(self.labels),
            targets=None if self.targets is None else change(self.targets),
        )


class Posterior(Protocol):
    """q(z | sentence) of B sentences: a dataclass of tensors with one row per sentence."""

    @property
    def mean(self) -> Tensor:
        """The mean, (B, L)."""

    @property
    def has_density(self) -> bool:
        """Whether the posterior has a density and a prior. A point has neither."""

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, scaled so that the prior has variance 1 in each unit, (B, L)."""

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw a reparameterised sample, (B, L)."""

    def kl(self) -> Tensor:
        """Return the KL to the prior in nats, summed over latent units, (B,)."""

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return log q(z | sentence) - log p(z) in nats, for one z per sentence: (B, L) -> (B,). Its expectation under
        q is `kl`."""

    def log_density(self, z: Tensor) -> Tensor:
        """Return log q(z_i | sentence_j) in nats for M vectors and B sentences, up to a constant: (M, L) -> (M, B)."""


class Readout(Protocol):
    """A function that turns a posterior into the input of a decoder: a sample or the mean."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """Return the input, (B, L)."""


class Prediction(Protocol):
    """A prediction with a negative log-likelihood.

    Its role determines which objective includes it. `Elbo` includes reconstructions, translations, and recombinations,
    which are generated from latents of different sentences. Paraphrases, word positions and class labels ("auxiliary")
    have objectives of their own.
    """

    @property
    def role(self) -> Role: ...

    @property
    def name(self) -> str:
        """The key of its metrics, such as "reconstruct/en": the role and the predicted column."""

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return (loss, nats). The loss is a scalar with gradient: the sum over the batch, with label smoothing. `nats`
        is each row's negative log-likelihood without smoothing or gradient, (B,)."""


@dataclass(frozen=True, eq=False)
class Styled:
    """The language latents of B sentences of one language, from all columns in this language."""

    mean: Tensor  # (B, L)
    number: Tensor  # (B,) int64; sentences of the same style have the same number


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a model for a batch. Objectives have no other input."""

    semantic: Mapping[str, Posterior]  # the semantic posterior of each column
    # The posteriors with a KL term, by latent. Inner keys name metrics such as "kl/en": {"semantic": {"semantic": the
    # posterior of the anchor}, "language": {"en": the posterior of the English column, ...}}.
    posteriors: Mapping[str, Mapping[str, Posterior]]
    predictions: Sequence[Prediction] = field(default_factory=list)
    negatives: Mapping[str, Posterior] = field(default_factory=dict)  # posteriors of the batch's negatives
    altered: Mapping[str, Posterior] = field(default_factory=dict)  # the semantic posteriors of its altered sentences
    composed: Sequence[slice] = ()  # parts of the semantic latent that depend on word order
    agreement: Mapping[str, Tensor] = field(default_factory=dict)  # cosines of mapped semantic means and targets, (B,)
    styles: Mapping[str, Styled] = field(default_factory=dict)  # the language latents of each language, in training
    batch: Batch | None = None  # the batch, in training, for objectives that need more data of the rows

    def named_posteriors(self) -> Iterator[tuple[str, Posterior]]:
        """Yield all posteriors with a KL term, each with its inner key."""
        for named in self.posteriors.values():
            yield from named.items()


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of a batch, summed over its rows. The training loop divides by the number of rows of an update."""

    total: Tensor  # scalar with gradient: the training loss
    # without gradient, in nats: for each row, as "reconstruct/en" (B,), or summed over all rows, as "kl/semantic" ()
    terms: Mapping[str, Tensor]


class Model(Protocol):
    """The interface of a model (a `torch.nn.Module`) for training, embedding and diagnosis."""

    @property
    def langs(self) -> Sequence[str]:
        """The languages of sentences that the model can encode."""

    @property
    def latents(self) -> Sequence[str]:
        """The latents to which a sentence can be encoded: first "semantic", then "language" or others."""

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of a latent for sentences of a language: Tokens -> Posterior."""

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token table of the semantic encoder, (V, H)."""

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the sentence vectors for a posterior, (B, D), by default its means."""

    def __call__(self, batch: Batch, readout: Readout | None = None) -> Outputs: ...

    # The methods of nn.Module that users of a model need:
    def modules(self) -> Iterator[nn.Module]: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def train(self, mode: bool = True) -> Self: ...
    def eval(self) -> Self: ...
    def to(self, device: torch.device | str) -> Self: ...


# Models with more capabilities than embedding, and their decoders. To find out whether a model can generate, test
# `isinstance(model, GenerativeModel)`, not the model's class.


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


class SentenceEncoder(Protocol):
    """The interface of an encoder for evaluation, probes and the app: a `bgt_core.Embedder`, or an external
    encoder that `encoders.open_encoder` opens.

    An encoder with empty `langs` accepts any language. Most external encoders do, and their only latent is "semantic".
    """

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    @property
    def fingerprint(self) -> str:
        """One line that changes if the vectors change. If it is empty, results are not cached."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences, (N, D) float32. Encoders of `open_encoder` also accept one string, and return (D,)."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, D) with row i of right (N, D): (N,)."""
