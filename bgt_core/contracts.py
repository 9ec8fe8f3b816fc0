"""The data types of this package; read this first.

Data flows one way, from text to numbers. In training, `data.store.tokenise` stores token ids, `data.batching` makes
batches, a model (`models.bgt`) predicts, an objective (`objectives`) adds losses, and `training.loop` updates weights:

    text -> Tokens -> Batch -> Posterior / Outputs -> Loss     in training
    text -> Tokens -> Posterior -> { vectors | text }          in use (`embedder`, `generation`)

Shapes have the same letters in all modules: B sentences in a batch, T tokens in its longest sentence, R real tokens in
the whole batch (all tokens except padding), H hidden units, L latent units, V tokens in the vocabulary, and S keys to
which a token attends. N sentences that are not in a batch have vectors of D units.

A row of the data has sentences with the same meaning, one per *column*, usually a sentence and its translation. A
*side* of a batch has the sentences of one column, which are all in one language. If all languages differ, the columns
are named by language ("en", "fr"); otherwise they have any names ("a", "b").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:  # importing torch takes a second, and processes that only read text do not need it
    import torch
    from torch import Tensor, nn

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # token ids of all our tokenizers; decoders start from EOS, not BOS

SEMANTIC, LANGUAGE, SYNTACTIC = "semantic", "language", "syntactic"  # names of latents
Role = Literal["reconstruct", "translate", "recombine", "paraphrase", "position", "auxiliary"]


def silent(*progress: object) -> None:
    """Do nothing: the default of arguments `report`, functions that long work calls with its progress."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """The right-padded token ids of B sentences of one language. Each sentence ends in EOS."""

    ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool, True at real tokens (EOS included)
    lang: str
    # (R,) int64: indices of the real tokens in mask.flatten(), computed on the CPU, since nonzero() waits for a GPU
    flat_index: Tensor

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, lang: str) -> Tokens:
        """Create `Tokens` from the padded token ids of B sentences and their mask, both (B, T)."""
        return cls(ids, mask, lang, mask.flatten().nonzero().squeeze(1))

    @classmethod
    def pad(cls, sentences: Sequence[Sequence[int] | np.ndarray], lang: str, length: int = 0) -> Tokens:
        """Pad the token ids of B sentences of one language to the same length T, which is at least `length`: (B, T)."""
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
        """Copy the tokens to another device, asynchronously if their memory is pinned."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(frozen=True, eq=False)
class Batch:
    """A micro-batch: B rows, each a sentence and its translations. BGT reconstructs all columns from the semantic
    latent of the anchor column. It also translates: it predicts each column from another column's semantic latent."""

    sides: Mapping[str, Tokens]
    anchor: str  # the column whose semantic latent all reconstructions of the batch share (BGT paper, sec. 3)
    shift: int = 1  # column i is translated from column i + shift, cyclically; differs between batches, 1 for 2 columns
    negatives: Mapping[str, Tokens] = field(default_factory=dict)  # One hard negative for each sentence.
    # `altered`: column -> for each of its sentences, another one with nearly the same words, but another meaning.
    altered: Mapping[str, Tokens] = field(default_factory=dict)
    labels: Tensor | None = None  # (B,) float32, the labels of the rows; None if the data have no labels
    targets: Tensor | None = None  # (B, D) float32: vectors of the teacher, another encoder, for these rows

    def __len__(self) -> int:
        return len(next(iter(self.sides.values())).ids)

    def source(self, column: str) -> str:
        """Return the column from which `column` is predicted: the column `shift` places later, cyclically."""
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
    """The interface of dataclasses that store the posteriors q(z | sentence) of B sentences, one row per sentence."""

    @property
    def mean(self) -> Tensor:
        """The mean, (B, L)."""

    @property
    def has_density(self) -> bool:
        """Whether the posterior has a density and a prior. A posterior that is a point has neither."""

    @property
    def standardised_mean(self) -> Tensor:
        """The mean, scaled so that the prior has variance 1 in each unit, (B, L)."""

    def rsample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw a reparameterised sample, (B, L)."""

    def kl(self) -> Tensor:
        """Return the KL to the prior in nats, summed over latent units, (B,)."""

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return log q(z | sentence) - log p(z) in nats. Each sentence has one z: (B, L) -> (B,). The expectation of
        this log-ratio under q is the KL."""

    def log_density(self, z: Tensor) -> Tensor:
        """Return log q(z_i | sentence_j) + a constant, in nats, for M vectors z and B sentences: (M, L) -> (M, B)."""


class Readout(Protocol):
    """A function that turns a posterior into the input of a decoder, such as a sample or the mean."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """Return the input of the decoder, (B, L)."""


class Prediction(Protocol):
    """A prediction with a negative log-likelihood.

    The field `role` says what is predicted, and so which objective includes the loss. `Elbo` includes reconstructions,
    translations, and recombinations (sentences predicted from the latents of two sentences). Other objectives include
    paraphrases, word positions, and class labels (role "auxiliary").
    """

    @property
    def role(self) -> Role: ...

    @property
    def name(self) -> str:
        """The name of the prediction's metrics: `role`, a slash and the predicted column, such as "reconstruct/en"."""

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return (loss, nats). `loss` is a scalar with a gradient: the label-smoothed loss, summed over the batch.
        `nats`, (B,), is each sentence's negative log-likelihood, without label smoothing and without a gradient."""


@dataclass(frozen=True, eq=False)
class Styled:
    """The language latents and the style ids of the B sentences of a batch that are in one language."""

    mean: Tensor  # (B, L), posterior means of the language latent
    number: Tensor  # (B,) int64, style ids; sentences of the same style have the same id


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a model for a batch. Objectives compute the loss from these outputs alone."""

    semantic: Mapping[str, Posterior]  # Column -> semantic posteriors of its sentences.
    # `posteriors` has the posteriors with a KL term: latent -> {name: posteriors of B sentences}. The name contains the
    # column, as in "en" or "semantic/en". The semantic posteriors of the anchor column may be named "semantic".
    posteriors: Mapping[str, Mapping[str, Posterior]]
    predictions: Sequence[Prediction] = field(default_factory=list)
    negatives: Mapping[str, Posterior] = field(default_factory=dict)  # semantic posteriors of `Batch.negatives`
    altered: Mapping[str, Posterior] = field(default_factory=dict)  # semantic posteriors of `Batch.altered`
    composed: Sequence[slice] = ()  # Units of the semantic latent that depend on word order.
    # `agreement`: column -> cosines of the teacher's vectors and the semantic means mapped to the teacher's space, (B,)
    agreement: Mapping[str, Tensor] = field(default_factory=dict)
    styles: Mapping[str, Styled] = field(default_factory=dict)  # language -> its sentences' latents; only in training
    batch: Batch | None = None  # the batch, for objectives that need data such as its labels; only in training

    def named_posteriors(self) -> Iterator[tuple[str, Posterior]]:
        """Yield (name, posterior) for all posteriors with a KL term. The metric of this KL is called "kl/" + name."""
        for named in self.posteriors.values():
            yield from named.items()


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of a batch, summed over its rows. The training loop divides it by the number of rows of an update."""

    total: Tensor  # The training loss, a scalar with a gradient.
    # `terms`: metrics without a gradient: a value per row, (B,), as in "reconstruct/en", or a sum, (), as in "kl/en".
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
        """Return the encoder of a latent for sentences of `lang`: a module (Tokens, layout or None) -> Posterior."""

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token embeddings of the semantic encoder, (V, H)."""

    def vectors(self, posterior: Posterior) -> Tensor:
        """Return the sentence vectors of a posterior, (B, D). By default, they are the posterior means."""

    def __call__(self, batch: Batch, readout: Readout | None = None) -> Outputs: ...

    # The following methods of nn.Module are declared for the type checker:
    def modules(self) -> Iterator[nn.Module]: ...
    def parameters(self) -> Iterator[nn.Parameter]: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def train(self, mode: bool = True) -> Self: ...
    def eval(self) -> Self: ...
    def to(self, device: torch.device | str) -> Self: ...


# The next protocols describe decoders, and models that can do more than embed. To find out whether a model can
# generate, test `isinstance(model, GenerativeModel)`, not the model's class.


@runtime_checkable
class GenerativeModel(Model, Protocol):
    """A model that generates sentences from its latents."""

    @property
    def writes(self) -> Sequence[str]:
        """The languages in which the model generates text. Empty if the decoders predict only a bag of words."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder that reconstructs sentences of `lang`."""

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Combine the latents of B sentences, (B, L) each, into the input of a decoder, (B, D)."""

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        """Return the mean of the prior of `latent` in the shape of `like`: (B, L) with equal rows."""


@runtime_checkable
class CorrectingModel(GenerativeModel, Protocol):
    """A model that can correct a draft of a sentence, given the sentence's latents."""

    def drafted(self, latents: Mapping[str, Tensor], drafts: Tokens, of_drafts: Tensor) -> Any:
        """Return the input of a decoder that corrects B drafts (first versions of a sentence), (B, T). It combines the
        drafts with the sentences' latents, (B, L) each, and the drafts' own semantic vectors, `of_drafts` (B, L)."""


@runtime_checkable
class TranslationModel(Model, Protocol):
    """A model that translates. Its decoders attend to all states of its encoder."""

    @property
    def translates(self) -> Sequence[str]:
        """The target languages of the model."""

    def states(self, side: Tokens) -> Any:
        """Encode B sentences. Return the encoder states, to which a decoder attends."""

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder that translates into `lang`. Its input is the result of `states`."""


@runtime_checkable
class DuplicateModel(Model, Protocol):
    """A model that predicts whether two sentences mean the same."""

    def duplicate_probability(self, left: Any, right: Any) -> Tensor:
        """Return the probabilities, (B,) float64, that the sentences of B pairs mean the same, given the posteriors of
        the left and the right sentences, (B, L)."""


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
        """The name of the encoder from which the vectors come, and statistics of these vectors."""


class StoredLatent(Protocol):
    """A semantic latent that another encoder computes."""

    encoder: str  # the name of the encoder, in the form of the option `--model`
    fingerprint: str  # `SentenceEncoder.fingerprint` of the encoder when the model was trained; "" if unknown
    mean: Tensor  # (D,), the mean of the encoder's vectors over the training text

    def fit(self, vectors: Tensor) -> None:
        """Compute and store the mean of the training text's vectors (N, D), and one scale by which they are divided."""


class Decoder(Protocol):
    """A decoder computes p(sentence | context): for whole sentences in training, and one token at a time in a search.
    The context of B sentences is a latent (B, L); for a decoder with attention, it is the states of an encoder."""

    def __call__(self, role: Role, column: str, context: Any, target: Tokens, /) -> Prediction:
        """Predict B target sentences, each from its context: a latent, or the states of an encoder."""

    def start(self, context: Any, /) -> DecoderState:
        """Return the decoder's state before the first token, with one hypothesis for each of B sentences."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Return the logits of the next token, (B, n, V), given the last token of each of n hypotheses, (B, n). Update
        `state`, which `start` has created, in place."""


class DecoderState(Protocol):
    """A decoder's state for the hypotheses of a search."""

    position: int  # number of tokens that each hypothesis has so far

    def reorder(self, parents: Tensor) -> None:
        """Replace hypothesis i of each sentence by a copy of hypothesis parents[:, i]; `parents` is (B, n)."""

    def select(self, rows: Tensor) -> None:
        """Keep only the hypotheses of the sentences with these indices, (B',)."""


class SentenceEncoder(Protocol):
    """The interface of an encoder for evaluation, probes and the app: a `bgt_core.Embedder`, or an external
    encoder that `encoders.open_encoder` opens.

    An encoder with empty `langs` accepts any language. Most external encoders have empty `langs`, and no latent except
    "semantic".
    """

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    @property
    def fingerprint(self) -> str:
        """One line of text that changes if the encoder's vectors change. If it is empty, results are not cached."""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences, (N, D) float32. Encoders from `open_encoder` also accept one string, and return (D,)."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the similarity of each row of left (N, D) and each row of right (M, D): (N, M)."""

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the similarity of row i of left (N, D) and row i of right (N, D): (N,)."""
