"""Output layers, with Logit fusion and without, and the predictions that they score (`contracts.Prediction`).

Logit fusion scores the next token from [latent ; features] (paper, sec. 2). The latent's part of the
product is the same at every position, so it is computed once per sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Linear, linear, matmul_dtype
from bgt_core.contracts import BOS, EOS, PAD, UNK, Role, Tokens
from bgt_core.errors import check_least
from bgt_core.nets.layers import xavier_linear
from bgt_core.nets.operations import PackedLayout, exact, nll


@dataclass(eq=False)
class Scorer:
    """The output layer for B sentences; the part that all tokens of a sentence share is computed once."""

    latent_bias: Tensor  # (B, any): the latent's part of the scores
    score: Callable[[Tensor, Tensor], Tensor]  # features (..., H) and the bias of each row, (..., any) -> (..., V)

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the next token of n hypotheses of each sentence: (B, n, H) -> (B, n, V)."""
        return self.score(features, self.latent_bias[:, None])

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        self.latent_bias = self.latent_bias.index_select(0, rows)


class OutputLayer(Protocol):
    """The last layer of a decoder: features and latent to scores of the next token."""

    def scorer(self, latent: Tensor) -> Scorer:
        """Return the scorer of B sentences, given their latents (B, L)."""
        ...

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """(N, H), (B, L) -> (loss, nats), as `Prediction.nll`."""
        ...


@dataclass(frozen=True, eq=False)
class SentencePrediction:
    """A decoder's prediction of the N real tokens of `target`.

    It keeps features, output layer and target together, so that logits always belong to the right side; full logits are
    computed on request only.
    """

    role: Role
    column: str  # the predicted column
    features: Tensor  # (N, H), in the order of target.ids[target.mask]
    latent: Tensor  # (B, L)
    layer: OutputLayer
    target: Tokens

    @property
    def name(self) -> str:
        """ "reconstruct/en", "translate/fr"."""
        return f"{self.role}/{self.column}"

    def logits(self) -> Tensor:
        """Scores of the whole vocabulary for each real token, (N, V)."""
        rows = self.target.flat_index // self.target.ids.shape[1]
        scorer = self.layer.scorer(self.latent)
        return scorer.score(self.features, scorer.latent_bias[rows])

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """(loss, nats): see `contracts.Prediction.nll`."""
        return self.layer.nll(self.features, self.latent, self.target, smoothing)

    def token_nll(self) -> Tensor:
        """The negative log-likelihood of each real token in nats, (N,); `nll` sums it over each sentence."""
        rows = self.target.flat_index // self.target.ids.shape[1]
        ids = self.target.ids[self.target.mask][:, None]
        each = Tokens.of(ids, torch.ones_like(ids, dtype=torch.bool), self.target.lang)
        return self.layer.nll(self.features, self.latent[rows], each, 0.0)[1]


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """A classifier's prediction of the class of each row."""

    logits: Tensor  # (B, K)
    labels: Tensor  # (B,) class numbers
    name: str = "label"
    role: Role = "auxiliary"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Cross-entropy: (loss, nats), a scalar and (B,)."""
        labels = self.labels.long()
        loss = F.cross_entropy(self.logits, labels, reduction="sum", label_smoothing=smoothing)
        return loss, F.cross_entropy(self.logits.detach(), labels, reduction="none")


class UntiedOutput(nn.Module):
    """W [features ; latent] with its own matrix, V x (H + L), as in the released code."""

    def __init__(self, vocab_size: int, width: int, latent: int):
        super().__init__()
        self.hidden = Linear(width, vocab_size, bias=False)
        self.latent = Linear(latent, vocab_size, bias=False)
        for part in (self.hidden, self.latent):
            nn.init.normal_(part.weight, std=width**-0.5)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `OutputLayer.scorer`; the latent's part, (B, V), is added to the scores."""
        return Scorer(self.latent(latent), lambda features, bias: self.hidden(features) + bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(features, self.hidden.weight, self.latent(latent), target, smoothing)


class TiedOutput(nn.Module):
    """E (features + P latent) with E the input table: the latent enters beside the features.

    At a vocabulary of 8k it has a quarter of the parameters of the untied form, and no V x L product.
    """

    def __init__(self, table: nn.Embedding, latent: int):
        super().__init__()
        self.table = table
        self.project = xavier_linear(latent, table.embedding_dim, bias=False)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `OutputLayer.scorer`; the latent's part, (B, H), is added to the features."""
        return Scorer(self.project(latent), lambda features, bias: linear(features + bias, self.table.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(self.fuse(features, latent, target), self.table.weight, None, target, smoothing)

    def fuse(self, features: Tensor, latent: Tensor, target: Tokens) -> Tensor:
        """features + P latent: (N, H), (B, L) -> (N, H)."""
        return features + PackedLayout.of(target).repeat(self.project(latent))


def unknown(layer: object, ids: Tensor) -> Tensor:
    """Tell which of these ids, (N,), a layer scores as the unknown token: (N,) bool.

    These are the unknown token itself, and for a `LanguageOutput` all tokens that do not occur in its training text.
    """
    never = ~layer.occurs[ids] if isinstance(layer, LanguageOutput) else torch.zeros_like(ids, dtype=torch.bool)
    return never | (ids == UNK)


class LanguageOutput(nn.Module):
    """A tied output layer for one language, which scores only the tokens that occur in that language's text.

    A language uses a third of a vocabulary of seven languages. So scores cost a third, and tokens of other languages
    are never generated. The training text determines the tokens; before that, all are allowed. A token that was not in
    the text counts as unknown.
    """

    occurs: Tensor

    def __init__(self, tied: TiedOutput, lang: str):
        super().__init__()
        self.tied, self.lang = tied, lang
        self.register_buffer("occurs", torch.ones(tied.table.num_embeddings, dtype=torch.bool))  # (V,)

    def restrict(self, occurs: Tensor) -> None:
        """Score only these tokens, (V,) bool, those of earlier calls, EOS, and the unknown token."""
        self.occurs.copy_(occurs if self.occurs.all() else occurs | self.occurs)
        self.occurs[[UNK, EOS]] = True
        self.occurs[[PAD, BOS]] = False  # never generated; the table has no gradient for PAD

    @property
    def tokens(self) -> Tensor:
        """The ids of the tokens that are scored, (U,)."""
        if self.occurs.is_meta:  # on the meta device only shapes are needed
            return torch.arange(len(self.occurs), device="meta")
        return self.occurs.nonzero().squeeze(1)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `OutputLayer.scorer`; -inf for tokens that don't occur."""
        tokens = self.tokens
        rows = self.tied.table(tokens)
        rows = rows.to(matmul_dtype(rows))  # once: autocast would convert them for each token

        def score(features: Tensor, bias: Tensor) -> Tensor:
            scores = linear(features + bias, rows)
            everything = scores.new_full((*scores.shape[:-1], len(self.occurs)), -torch.inf)
            return everything.scatter_(-1, tokens.expand_as(scores), scores)

        return Scorer(self.tied.project(latent), score)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        number = self.occurs.cumsum(0) - 1  # (V,): the index of a token among those that occur
        number = torch.where(self.occurs, number, number[UNK])
        own = replace(target, ids=number[target.ids])
        fused = self.tied.fuse(features, latent, target)
        return nll(fused, self.tied.table(self.tokens), None, own, smoothing)


class PlainOutput(nn.Module):
    """W features: an output layer without Logit fusion. W is the input table, or its own matrix."""

    def __init__(self, matrix: nn.Embedding | nn.Linear):
        super().__init__()
        self.matrix = matrix

    @classmethod
    def untied(cls, vocab_size: int, width: int) -> PlainOutput:
        """Its own matrix, V x H, initialised as in `UntiedOutput`."""
        matrix = Linear(width, vocab_size, bias=False)
        nn.init.normal_(matrix.weight, std=width**-0.5)
        return cls(matrix)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `OutputLayer.scorer`; the latent's part is empty, (B, 0)."""
        return Scorer(latent[:, :0], lambda features, _: linear(features, self.matrix.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(features, self.matrix.weight, None, target, smoothing)


class Perceptron(nn.Module):
    """Layers of Linear and ReLU: the first maps `inputs` to `width` units, the others `width` to `width`."""

    def __init__(self, inputs: int, width: int, layers: int):
        super().__init__()
        check_least(1, hidden_dim=width, hidden_layers=layers)
        self.first = Linear(inputs, width)
        self.layers = nn.ModuleList(Linear(width, width) for _ in range(layers - 1))

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., H)."""
        return self.after_first(self.first(x))

    def after_first(self, x: Tensor) -> Tensor:
        """Everything after the first linear map: (..., H) -> (..., H)."""
        x = torch.relu(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class PerceptronOutput(nn.Module):
    """W MLP([features ; latent]), with the last `latent` units of the decoder's input as the latent."""

    def __init__(self, vocab_size: int, features: int, latent: int, hidden: int, layers: int):
        super().__init__()
        self.perceptron = Perceptron(features, hidden, layers)
        self.latent = Linear(latent, hidden, bias=False)  # its part of the first map, computed once per sentence
        self.matrix = Linear(hidden, vocab_size, bias=False)

    def project_latent(self, latent: Tensor) -> Tensor:
        """Compute the latent's part of the first map: (B, L) -> (B, hidden)."""
        return self.latent(latent[:, -self.latent.in_features :])

    def hidden(self, features: Tensor, latent_bias: Tensor) -> Tensor:
        """(..., H), (..., hidden) -> (..., hidden)."""
        return self.perceptron.after_first(self.perceptron.first(features) + latent_bias)

    def scorer(self, latent: Tensor) -> Scorer:
        return Scorer(self.project_latent(latent), lambda features, bias: self.matrix(self.hidden(features, bias)))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(features, PackedLayout.of(target).repeat(self.project_latent(latent)))
        return nll(hidden, self.matrix.weight, None, target, smoothing)


class BagOfWords(nn.Module):
    """p(sentence | latent) as if all tokens except EOS were drawn independently from softmax(W MLP(latent)).

    The order of tokens is ignored, so this decoder has a likelihood, but can't generate sentences.
    """

    def __init__(self, vocab_size: int, latent: int, hidden: int, layers: int):
        super().__init__()
        self.perceptron = Perceptron(latent, hidden, layers)
        self.matrix = Linear(hidden, vocab_size, bias=False)

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict `target` (B, T) from latent (B, L)."""
        nothing = latent.new_zeros(len(target.flat_index), 0)  # tokens have no features of their own
        return SentencePrediction(role, column, nothing, latent, self, target)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `OutputLayer.scorer`: every token has the scores of its sentence, (B, V)."""
        return Scorer(self.matrix(self.perceptron(latent)), lambda features, bias: bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `OutputLayer.nll`; one softmax per sentence, no cost of EOS, no label smoothing."""
        layout = PackedLayout.of(target)
        log_p = exact(self.matrix(self.perceptron(latent))).log_softmax(-1)  # (B, V)
        ids = layout.pack(target.ids)  # (N,)
        cost = layout.sum(-log_p[layout.rows, ids] * (ids != EOS))  # (B,)
        return cost.sum(), cost.detach()


class PositionPredictor(nn.Module):
    """A perceptron that scores `positions` positions for each word, from [word ; latent].

    A word is given as its row of `table`. This is also the token table of the latent's encoder, so that this loss
    trains it. EOS is not a word, and words past the last position are skipped.
    """

    def __init__(self, table: nn.Embedding, latent: int, hidden: int, layers: int, positions: int):
        super().__init__()
        check_least(1, positions=positions)
        self.table = table
        self.perceptron = Perceptron(table.embedding_dim + latent, hidden, layers)
        self.scores = Linear(hidden, positions)

    def forward(self, column: str, latent: Tensor, target: Tokens) -> PositionPrediction:
        """Predict the positions of the words of `target` (B, T) from latent (B, L)."""
        return PositionPrediction(column, self, latent, target)


@dataclass(frozen=True, eq=False)
class PositionPrediction:
    """The predicted position of each word; scores are computed when `nll` is called."""

    column: str
    predictor: PositionPredictor
    latent: Tensor  # (B, L)
    target: Tokens
    role: Role = "position"

    @property
    def name(self) -> str:
        """ "position/a"."""
        return f"{self.role}/{self.column}"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the true position among those of the sentence: (loss, nats), a scalar and (B,)."""
        layout, predictor = PackedLayout.of(self.target), self.predictor
        ids, place = layout.pack(self.target.ids), layout.columns  # (N,)
        words = predictor.table(ids)
        scores = exact(predictor.scores(predictor.perceptron(torch.cat([words, layout.repeat(self.latent)], dim=-1))))
        count, places = scores.shape[1], torch.arange(scores.shape[1], device=scores.device)
        length = layout.repeat(self.target.mask.sum(1)) - 1  # words, without EOS
        log_p = scores.masked_fill(places >= length[:, None].clamp(min=1), -torch.inf).log_softmax(-1)
        counts = (ids != EOS) & (place < count)
        gold = log_p.gather(1, torch.where(counts, place, 0)[:, None]).squeeze(1)
        cost = layout.sum(torch.where(counts, -gold, 0.0))  # (B,)
        return cost.sum(), cost.detach()
