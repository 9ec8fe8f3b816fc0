"""The data types of this package; read this first.

Data flows one way, from text to numbers:

    text -> Tokens -> Batch -> Posterior / Outputs -> Loss     in training
    text -> Tokens -> Posterior -> { vectors | text }          in use

Shape letters, here and everywhere: B sentences in a batch, T tokens in its longest sentence, N tokens in the whole
batch without padding, H hidden units, L latent units, V tokens in the vocabulary. Outside a batch, N is the number of
sentences and D the size of a vector.

A side of a batch is a *column* of the data, and has a language. Columns are named by language ("en", "fr") if
all languages differ, and freely ("a", "b") if two columns have the same language. No column is "source" or
"target" by itself: every column is predicted from another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

if TYPE_CHECKING:  # the processes that prepare text import this file without torch
    import torch
    from torch import Tensor, nn

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # token ids, fixed when a tokenizer is trained; decoders start from EOS, not BOS

SEMANTIC, LANGUAGE, SYNTACTIC = "semantic", "language", "syntactic"  # names that users choose from: `--latent semantic`
Role = Literal["reconstruct", "translate", "recombine", "paraphrase", "position", "auxiliary"]


@dataclass(frozen=True, eq=False)
class Tokens:
    """One side of a batch: right-padded token ids of B sentences, each ending in EOS."""

    ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True at real tokens (EOS included)
    lang: str
    # (N,) int64, indices of the real tokens in mask.flatten(); made on the CPU, because nonzero() synchronises a GPU
    flat_index: Tensor

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, lang: str) -> Tokens:
        """Make a side from ids and mask, both (B, T)."""
        return cls(ids, mask, lang, mask.flatten().nonzero().squeeze(1))

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int] | np.ndarray], lang: str, length: int = 0) -> Tokens:
        """Pad the token ids of B sentences to one side, (B, T), with T at least `length`."""
        import torch

        ids = np.full((len(sentences), max(length, *map(len, sentences))), PAD, dtype=np.int64)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        padded = torch.from_numpy(ids)
        return cls.of(padded, padded != PAD, lang)

    def map(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """Apply a function to each tensor, such as a copy to another device."""
        return Tokens(change(self.ids), change(self.mask), self.lang, change(self.flat_index))

    def to(self, device: torch.device | str) -> Tokens:
        """Copy the side to another device; the copy does not block if the memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(frozen=True, eq=False)
class Batch:
    """B rows of a corpus: one `Tokens` per column, and the anchor column, whose latent all columns share."""

    sides: Mapping[str, Tokens]
    anchor: str  # the column that provides the semantic latent of the whole batch (paper, sec. 3)
    shift: int = 1  # column i is predicted from column i + shift; it changes with the step, so that all pairs occur
    negatives: Mapping[str, Tokens] = field(default_factory=dict)  # one hard negative per row and column
    # for some columns, sentences with the same words and another meaning
    altered: Mapping[str, Tokens] = field(default_factory=dict)
    labels: Tensor | None = None  # (B,) float32, for labelled rows
    targets: Tensor | None = None  # (B, D) float32: vectors of another encoder, such as a teacher, for these rows

    def __len__(self) -> int:
        return len(next(iter(self.sides.values())).ids)

    def source(self, column: str) -> str:
        """Return the column that `column` is predicted from: of two columns the other one, of one column itself."""
        columns = list(self.sides)
        return columns[(columns.index(column) + self.shift) % len(columns)]

    def to(self, device: torch.device | str) -> Batch:
        """Copy the batch to another device; the copies do not block if the memory is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> Batch:
        """Copy the batch to pinned memory, from which a GPU copies on its own."""
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
        """(B, L)."""

    @property
    def has_density(self) -> bool:
        """Whether the posterior has a variance and a prior; a point has neither."""

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, scaled so that the prior has variance 1 in each unit, (B, L)."""

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw a reparameterised sample, (B, L)."""

    def kl(self) -> Tensor:
        """Return the KL to the prior in nats, summed over latent units, (B,)."""

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return log q(z | sentence) - log p(z) in nats, one z per sentence: (B, L) -> (B,). `kl` is its
        expectation."""

    def log_density(self, z: Tensor) -> Tensor:
        """Return log q(z_i | sentence_j) in nats, up to a constant: (M, L) -> (M, B)."""


class Readout(Protocol):
    """A function that turns a posterior into the latent for the decoder: a sample, or the mean."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """(B, L)."""


class Prediction(Protocol):
    """A prediction with a negative log-likelihood. Its role tells which objective trains it: reconstructions are part
    of the ELBO, and translations are added to it, with smoothed labels; recombinations use latents of different
    sentences; paraphrases, word positions and class labels ("auxiliary") have separate objectives."""

    @property
    def role(self) -> Role: ...

    @property
    def name(self) -> str:
        """The key of its metrics, such as "reconstruct/en": the role and the predicted column."""

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return (loss, nats): the label-smoothed loss summed over the batch, a scalar with gradient, and each row's
        negative log-likelihood without smoothing or gradient, (B,)."""


@dataclass(frozen=True, eq=False)
class Styled:
    """The language latents of B sentences of one language, from all columns in this language."""

    mean: Tensor  # (B, L)
    number: Tensor  # (B,) int64; sentences of the same style have the same number


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a model for a batch, which are the only input of objectives."""

    semantic: Mapping[str, Posterior]  # the semantic posterior of each column
    # Posteriors with a KL term, by latent: {"semantic": {"semantic": the anchor's}, "language": {"en": its own, ...}}.
    # The inner name is the key of their metrics, "kl/en".
    posteriors: Mapping[str, Mapping[str, Posterior]]
    predictions: Sequence[Prediction] = field(default_factory=list)
    negatives: Mapping[str, Posterior] = field(default_factory=dict)  # posteriors of the batch's negatives
    altered: Mapping[str, Posterior] = field(default_factory=dict)  # the semantic posteriors of its altered sentences
    composed: Sequence[slice] = ()  # parts of the semantic latent that are not an average of token vectors
    agreement: Mapping[str, Tensor] = field(default_factory=dict)  # cosines of mapped semantic means and targets, (B,)
    styles: Mapping[str, Styled] = field(default_factory=dict)  # the language latents of each language, in training
    batch: Batch | None = None  # in training, the batch itself, for objectives that need more data of its rows

    def of(self, batch: Batch) -> Outputs:
        """Return the same outputs with their batch."""
        return replace(self, batch=batch)

    def named_posteriors(self) -> Iterator[tuple[str, Posterior]]:
        """Yield all posteriors with a KL term, each with the key of its metrics."""
        for named in self.posteriors.values():
            yield from named.items()


@dataclass(frozen=True, eq=False)
class Loss:
    """Sums over the rows of a batch; the training loop divides by the rows of a whole update."""

    total: Tensor  # scalar with gradient: the training loss
    # without gradient, in nats: for each row, as "reconstruct/en" (B,), or summed over all rows, as "kl/semantic" ()
    terms: Mapping[str, Tensor]


class Model(Protocol):
    """The interface of a model (a `torch.nn.Module`) for training, embedding and diagnosis."""

    @property
    def langs(self) -> Sequence[str]:
        """The languages that it can encode."""

    @property
    def latents(self) -> Sequence[str]:
        """The latents a sentence can be encoded to: "semantic" first, then "language" or others."""

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of that latent for sentences of that language: Tokens -> Posterior."""

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token table of its semantic encoder, (V, H)."""

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the vectors of a posterior, (B, D): its means, unless the model defines others."""

    def __call__(self, batch: Batch, readout: Readout | None = None) -> Outputs: ...

    # Of nn.Module:
    def modules(self) -> Iterator[nn.Module]: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def train(self, mode: bool = True) -> Self: ...
    def eval(self) -> Self: ...
    def to(self, device: torch.device | str) -> Self: ...


class SentenceEncoder(Protocol):
    """The interface of an encoder for evaluation, probes and the app: a `bgt_core.Embedder`, or another encoder that
    `encoders.open_encoder` opens.

    An encoder with empty `langs` takes any language. Most encoders of others do, and have one latent, "semantic".
    """

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the vectors, in one line; empty if unknown: results are then not cached."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences: (N, D) float32, in order. Encoders that we open also take a single string: (D,)."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, D) with row i of right (N, D): (N,)."""
