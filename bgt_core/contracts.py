"""The nouns of this package; read this first.

Data flows one way, from text to numbers:

    text -> Tokens -> Batch -> Posterior / Outputs -> { Loss | vectors | text }

Shape letters, here and everywhere: B sentences in a batch, T tokens of the longest of them, N real tokens
of all of them, H hidden units, L latent units, V pieces of the vocabulary. Outside a batch: N sentences, D
units of any vector.

A side of a batch is a *column* of the data and knows its language. Columns are named by language ("en", "fr") where
each language comes once, and freely ("a", "b") where two columns hold one language. Nothing is ever "source" or
"target" by itself: every column is written from another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

if TYPE_CHECKING:  # the processes that prepare text import this file, and need no torch
    import torch
    from torch import Tensor, nn

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # piece ids, fixed when a tokenizer is trained

SEMANTIC, LANGUAGE, SYNTACTIC = "semantic", "language", "syntactic"  # what users choose between: `--latent semantic`
Role = Literal["reconstruct", "translate", "recombine", "paraphrase", "position", "auxiliary"]


@dataclass(frozen=True, eq=False)
class Tokens:
    """One side of a batch: right-padded piece ids of B sentences, each ending in EOS."""

    ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True at real pieces (EOS included)
    lang: str
    flat_index: Tensor  # (N,) int64, where mask.flatten() is True; made on the CPU: nonzero() on a GPU synchronises

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, lang: str) -> Tokens:
        """A side of these ids and mask, both (B, T)."""
        return cls(ids, mask, lang, mask.flatten().nonzero().squeeze(1))

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int] | np.ndarray], lang: str, length: int = 0) -> Tokens:
        """Piece ids of B sentences -> one padded side, (B, T), with T at least `length`."""
        import torch

        ids = np.full((len(sentences), max(length, *map(len, sentences))), PAD, dtype=np.int64)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        padded = torch.from_numpy(ids)
        return cls.of(padded, padded != PAD, lang)

    def map(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """The same side with each tensor changed, as by a copy to another device."""
        return Tokens(change(self.ids), change(self.mask), self.lang, change(self.flat_index))

    def to(self, device: torch.device | str) -> Tokens:
        """The same side on another device; the copy does not block when the memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(frozen=True, eq=False)
class Batch:
    """B rows of a corpus: one side a column, and the column that explains them all."""

    sides: Mapping[str, Tokens]
    anchor: str  # the column whose sentence gives the semantic latent of the whole batch (paper, sec. 3)
    shift: int = 1  # column i is written from column i + shift; turns with the step, so that each is written from each
    negatives: Mapping[str, Tokens] = field(default_factory=dict)  # one hard negative per row and column
    altered: Mapping[str, Tokens] = field(default_factory=dict)  # of some columns: the same words, another meaning
    labels: Tensor | None = None  # (B,) float32, of labelled rows
    targets: Tensor | None = None  # (B, D) float32: a teacher's vectors, of rows that have one

    def __len__(self) -> int:
        return len(next(iter(self.sides.values())).ids)

    def source(self, column: str) -> str:
        """The column that `column` is written from; the other one of two, itself where there is no other."""
        columns = list(self.sides)
        return columns[(columns.index(column) + self.shift) % len(columns)]

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device; the copies do not block when the memory is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> Batch:
        """The same batch in memory that a GPU copies from on its own."""
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
    """q(z | sentence) of B sentences."""

    @property
    def mean(self) -> Tensor:
        """(B, L)."""

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The posteriors of several batches as one, (N, L)."""

    @property
    def has_density(self) -> bool:
        """Whether it has a width, and a prior beside it; a point has none."""

    def double(self) -> Self:
        """The same in float64."""

    @property
    def standardised_mean(self) -> Tensor:
        """The mean where the prior has variance 1 in each unit, (B, L)."""

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """A reparameterised draw, (B, L)."""

    def kl(self) -> Tensor:
        """KL to the prior in nats, summed over latent units, (B,)."""

    def log_ratio(self, z: Tensor) -> Tensor:
        """log q(z | sentence) - log p(z) in nats of one z per sentence, (B, L) -> (B,); `kl` is its mean."""

    def log_density(self, z: Tensor) -> Tensor:
        """log q(z_i | sentence_j) in nats, less one constant for all, (M, L) -> (M, B)."""


class Readout(Protocol):
    """How a model that decodes from posteriors takes a latent from each: a draw, or the mean."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """(B, L)."""


class Similarity(Protocol):
    """How alike two sentences are, from their vectors; cosine unless a model says otherwise."""

    def pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Each row of left (N, D) with the same row of right (N, D): (N,)."""

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Each row of left (N, D) with each row of right (M, D): (N, M)."""


class Prediction(Protocol):
    """A prediction with a negative log-likelihood. Reconstructions make the bound; translations are trained beside it,
    with smoothed labels; recombinations mix latents of different sentences; paraphrases and word positions have
    objectives of their own; class labels are auxiliary."""

    @property
    def role(self) -> Role: ...

    @property
    def name(self) -> str:
        """The key of its metrics: "reconstruct/en", the column that is predicted."""

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(loss, nats): the smoothed loss summed over the batch, a scalar with gradient, and each row's plain negative
        log-likelihood without one, (B,)."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a model makes of a batch; objectives read nothing else."""

    semantic: Mapping[str, Posterior]  # the semantic posterior of each column
    posteriors: Mapping[str, Mapping[str, Posterior]]  # those that pay KL, by latent: {"semantic": {"semantic": the
    # anchor's}, "language": {"en": its own, ...}}; the inner name is the key of their metrics, "kl/en"
    predictions: Sequence[Prediction] = field(default_factory=list)
    negatives: Mapping[str, Posterior] = field(default_factory=dict)  # what the batch's negatives mean
    altered: Mapping[str, Posterior] = field(default_factory=dict)  # the semantic posteriors of its altered sentences
    composed: Sequence[slice] = ()  # the parts of the semantic latent that are composed, as units
    agreement: Mapping[str, Tensor] = field(default_factory=dict)  # cosines of mapped semantic means and targets, (B,)

    def named_posteriors(self) -> Iterator[tuple[str, Posterior]]:
        """All that pay KL, with the key of their metrics."""
        for named in self.posteriors.values():
            yield from named.items()


@dataclass(frozen=True, eq=False)
class Loss:
    """Sums over the rows of a batch; the training loop divides by the rows of a whole update."""

    total: Tensor  # scalar with gradient, what is minimised
    terms: Mapping[str, Tensor]  # scalars without gradient, nats: "reconstruct/en", "kl/semantic"


class Model(Protocol):
    """What training, embedding and diagnosis see of a model (a `torch.nn.Module`)."""

    @property
    def langs(self) -> Sequence[str]:
        """The languages whose sentences it can encode."""

    @property
    def latents(self) -> Sequence[str]:
        """The latents a sentence can be encoded to: "semantic" first, then "language" or others."""

    @property
    def similarity(self) -> Similarity:
        """Of two vectors of this model."""

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """What reads that latent from sentences of that language: Tokens -> Posterior."""

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token vectors that its semantic encoder reads first, (V, H)."""

    def vectors(self, posterior: Posterior) -> Tensor:
        """What is embedded of a posterior, (B, D): its mean, unless the model says otherwise."""

    def __call__(self, batch: Batch, readout: Readout | None = None) -> Outputs: ...

    # Of nn.Module:
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def train(self, mode: bool = True) -> Self: ...
    def eval(self) -> Self: ...
    def to(self, device: torch.device | str) -> Self: ...


class SentenceEncoder(Protocol):
    """All that STS, probes and the app see of a model (`bgt_core.Embedder`, or what `adapters.open_encoder` makes).

    No `langs` means any language: encoders of others do not ask for one. They mostly have one latent, "semantic"."""

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    @property
    def fingerprint(self) -> str:
        """What decides the vectors, in one line; empty where nobody knows, so that nothing may be reused."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given. Those that we open take a single string too: (D,)."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Each row of left (N, D) with each row of right (M, D): (N, M)."""

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Each row of left (N, D) with the same row of right (N, D): (N,)."""
