"""Output layers of decoders, and predictions with a negative log-likelihood (`contracts.Prediction`).

With Logit fusion (BGT paper, sec. 2), an output layer scores the next token by multiplying [latent ; features] by a
matrix. The product with the latent is the same for all tokens of a sentence, so it is computed once per sentence.
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
    """An output layer for B sentences whose latents it already has. It computes logits from a decoder's features."""

    latent_bias: Tensor  # (B, any size): computed once per sentence from the latents, and passed to `score` as bias
    score: Callable[[Tensor, Tensor], Tensor]  # (features (..., H), bias (..., any)) -> scores (..., V)

    def __call__(self, features: Tensor) -> Tensor:
        """Compute the logits of the next token for n hypotheses per sentence: (B, n, H) -> (B, n, V)."""
        return self.score(features, self.latent_bias[:, None])

    def select(self, rows: Tensor) -> None:
        """Keep only the hypotheses of the sentences with these indices, (B',)."""
        self.latent_bias = self.latent_bias.index_select(0, rows)


class OutputLayer(Protocol):
    """The last layer of a decoder, which computes logits from the decoder's features and the latent."""

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences, given their latents (B, L)."""

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """Compute (loss, nats), as defined in `Prediction.nll`, from features (R, H) and latents (B, L)."""


@dataclass(frozen=True, eq=False)
class SentencePrediction:
    """A decoder's prediction of the R real tokens of `target`. Logits are computed only on request."""

    role: Role
    column: str  # name of the data column that is predicted
    features: Tensor  # (R, H), one row for each token in target.ids[target.mask]
    latent: Tensor  # (B, L)
    layer: OutputLayer
    target: Tokens

    @property
    def name(self) -> str:
        """The name of the prediction's metrics, such as "reconstruct/en" or "translate/fr"."""
        return f"{self.role}/{self.column}"

    def logits(self) -> Tensor:
        """Return the scores of the whole vocabulary at each real token, (R, V)."""
        scorer = self.layer.scorer(self.latent)
        return scorer.score(self.features, PackedLayout.of(self.target).repeat(scorer.latent_bias))

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the label-smoothed loss, a scalar, and each sentence's NLL in nats, (B,)."""
        return self.layer.nll(self.features, self.latent, self.target, smoothing)

    def token_nll(self) -> Tensor:
        """Return the negative log-likelihood of each real token in nats, (R,)."""
        latents = PackedLayout.of(self.target).repeat(self.latent)
        ids = self.target.ids[self.target.mask][:, None]
        each = Tokens.of(ids, torch.ones_like(ids, dtype=torch.bool), self.target.lang)  # R one-token sentences
        return self.layer.nll(self.features, latents, each, 0.0)[1]


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """A classifier's prediction of the class of each row."""

    logits: Tensor  # (B, K), for K classes
    labels: Tensor  # (B,), the true class of each row, from 0 to K - 1
    name: str = "label"
    role: Role = "auxiliary"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the label-smoothed loss, a scalar, and each row's cross-entropy without smoothing in nats, (B,)."""
        labels = self.labels.long()
        loss = F.cross_entropy(self.logits, labels, reduction="sum", label_smoothing=smoothing)
        return loss, F.cross_entropy(self.logits.detach(), labels, reduction="none")


class UntiedOutput(nn.Module):
    """Logit fusion with a matrix W (V, H + L) of its own, as in the authors' code: logits are W [features ; latent]."""

    def __init__(self, vocab_size: int, width: int, latent: int):
        super().__init__()
        self.hidden = Linear(width, vocab_size, bias=False)
        self.latent = Linear(latent, vocab_size, bias=False)
        for part in (self.hidden, self.latent):
            nn.init.normal_(part.weight, std=width**-0.5)

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences. The product with the latent, (B, V), is added to the scores."""
        return Scorer(self.latent(latent), lambda features, bias: self.hidden(features) + bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(features, self.hidden.weight, self.latent(latent), target, smoothing)


class TiedOutput(nn.Module):
    """Logit fusion with the token embeddings E as output matrix: logits are E (features + P latent), with P (H, L).
    For 8,000 tokens, it has a quarter of the parameters of `UntiedOutput`, and no product with a (V, L) matrix."""

    def __init__(self, table: nn.Embedding, latent: int):
        super().__init__()
        self.table = table
        self.project = xavier_linear(latent, table.embedding_dim, bias=False)

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences. The product with the latent, (B, H), is added to the features."""
        return Scorer(self.project(latent), lambda features, bias: linear(features + bias, self.table.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(self.fuse(features, latent, target), self.table.weight, None, target, smoothing)

    def fuse(self, features: Tensor, latent: Tensor, target: Tokens) -> Tensor:
        """Add the projected latent to each token's features: features (R, H), latent (B, L) -> (R, H)."""
        return features + PackedLayout.of(target).repeat(self.project(latent))


class LanguageOutput(nn.Module):
    """A tied output layer for one language, which scores only the tokens that occur in the language's training text.

    One language uses about a third of a vocabulary for seven languages. So computing scores takes a third of the time,
    and tokens that only other languages use are never generated. If a target contains such a token, it counts as the
    unknown token. Until `restrict` is called, all tokens are scored.
    """

    occurs: Tensor  # (V,) bool, True for the tokens that are scored

    def __init__(self, tied: TiedOutput, lang: str):
        super().__init__()
        self.tied, self.lang = tied, lang
        self.register_buffer("occurs", torch.ones(tied.table.num_embeddings, dtype=torch.bool))  # (V,)

    def restrict(self, occurs: Tensor) -> None:
        """Score only the tokens where `occurs` (V,) is True, the tokens of earlier calls, EOS and the unknown token."""
        self.occurs.copy_(occurs if self.occurs.all() else occurs | self.occurs)
        self.occurs[[UNK, EOS]] = True
        self.occurs[[PAD, BOS]] = False  # PAD and BOS are never generated

    @property
    def tokens(self) -> Tensor:
        """The ids of the U tokens that the layer can predict, (U,)."""
        if self.occurs.is_meta:  # values are unknown on the meta device, and only shapes matter there
            return torch.arange(len(self.occurs), device="meta")
        return self.occurs.nonzero().squeeze(1)

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences. Tokens where `occurs` is False get the score -inf."""
        tokens = self.tokens
        rows = self.tied.table(tokens)
        rows = rows.to(matmul_dtype(rows))  # convert once, because autocast would convert the rows for every token

        def score(features: Tensor, bias: Tensor) -> Tensor:
            scores = linear(features + bias, rows)
            everything = scores.new_full((*scores.shape[:-1], len(self.occurs)), -torch.inf)
            return everything.scatter_(-1, tokens.expand_as(scores), scores)

        return Scorer(self.tied.project(latent), score)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        number = self.occurs.cumsum(0) - 1  # (V,): each token's index in self.tokens
        number = torch.where(self.occurs, number, number[UNK])
        own = replace(target, ids=number[target.ids])
        fused = self.tied.fuse(features, latent, target)
        return nll(fused, self.tied.table(self.tokens), None, own, smoothing)


class PlainOutput(nn.Module):
    """An output layer without Logit fusion: logits are W features. W is the token embeddings, or a separate matrix."""

    def __init__(self, matrix: nn.Embedding | nn.Linear):
        super().__init__()
        self.matrix = matrix

    @classmethod
    def untied(cls, vocab_size: int, width: int) -> PlainOutput:
        """Return a layer with a separate matrix (V, H), which is initialised as in `UntiedOutput`."""
        matrix = Linear(width, vocab_size, bias=False)
        nn.init.normal_(matrix.weight, std=width**-0.5)
        return cls(matrix)

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences. The latent is not used, so `latent_bias` is empty, (B, 0)."""
        return Scorer(latent[:, :0], lambda features, _: linear(features, self.matrix.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        return nll(features, self.matrix.weight, None, target, smoothing)


class Perceptron(nn.Module):
    """A multilayer perceptron (MLP): `layers` layers of Linear and ReLU, which map `inputs` units to `width` units."""

    def __init__(self, inputs: int, width: int, layers: int):
        super().__init__()
        check_least(1, hidden_dim=width, hidden_layers=layers)
        self.first = Linear(inputs, width)
        self.layers = nn.ModuleList(Linear(width, width) for _ in range(layers - 1))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the MLP to vectors: (..., inputs) -> (..., width)."""
        return self.after_first(self.first(x))

    def after_first(self, x: Tensor) -> Tensor:
        """Apply the MLP without its first linear map: (..., width) -> (..., width)."""
        x = torch.relu(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class PerceptronOutput(nn.Module):
    """An output layer with the logits W MLP([features ; z]). The latents that its methods get, (B, L), end in z."""

    def __init__(self, vocab_size: int, features: int, latent: int, hidden: int, layers: int):
        super().__init__()
        self.perceptron = Perceptron(features, hidden, layers)
        self.latent = Linear(latent, hidden, bias=False)  # the columns for z of the MLP's first matrix
        self.matrix = Linear(hidden, vocab_size, bias=False)

    def project_latent(self, latent: Tensor) -> Tensor:
        """Multiply z by its columns of the MLP's first matrix: (B, L) -> (B, hidden)."""
        return self.latent(latent[:, -self.latent.in_features :])

    def hidden(self, features: Tensor, latent_bias: Tensor) -> Tensor:
        """Compute the MLP from features (..., H) and the projected latent (..., hidden): (..., hidden)."""
        return self.perceptron.after_first(self.perceptron.first(features) + latent_bias)

    def scorer(self, latent: Tensor) -> Scorer:
        return Scorer(self.project_latent(latent), lambda features, bias: self.matrix(self.hidden(features, bias)))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(features, PackedLayout.of(target).repeat(self.project_latent(latent)))
        return nll(hidden, self.matrix.weight, None, target, smoothing)


class BagOfWords(nn.Module):
    """A decoder that draws all tokens independently from softmax(W MLP(latent)). EOS adds nothing to the loss. The
    decoder ignores the order of tokens. So it has a likelihood, but can't generate sentences."""

    def __init__(self, vocab_size: int, latent: int, hidden: int, layers: int):
        super().__init__()
        self.perceptron = Perceptron(latent, hidden, layers)
        self.matrix = Linear(hidden, vocab_size, bias=False)

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from their latents (B, L)."""
        no_features = latent.new_zeros(len(target.flat_index), 0)
        return SentencePrediction(role, column, no_features, latent, self, target)

    def scorer(self, latent: Tensor) -> Scorer:
        """Return a scorer for B sentences. The scores, (B, V), are the same for all tokens of a sentence."""
        return Scorer(self.matrix(self.perceptron(latent)), lambda features, bias: bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """Return the sum of all NLLs, and each sentence's NLL in nats, (B,). Features and smoothing are not used."""
        layout = PackedLayout.of(target)
        log_p = exact(self.matrix(self.perceptron(latent))).log_softmax(-1)  # (B, V)
        ids = layout.pack(target.ids)  # (R,)
        cost = layout.sum(-log_p[layout.rows, ids] * (ids != EOS))  # (B,)
        return cost.sum(), cost.detach()


class PositionPredictor(nn.Module):
    """A perceptron that predicts the position of each token in its sentence, from [token vector ; latent].

    `table` has the token embeddings of the encoder that computes the latent, so that this loss also trains them. The
    loss ignores EOS, and all tokens after the first `positions` tokens.
    """

    def __init__(self, table: nn.Embedding, latent: int, hidden: int, layers: int, positions: int):
        super().__init__()
        check_least(1, positions=positions)
        self.table = table
        self.perceptron = Perceptron(table.embedding_dim + latent, hidden, layers)
        self.scores = Linear(hidden, positions)

    def forward(self, column: str, latent: Tensor, target: Tokens) -> PositionPrediction:
        """Predict the position of each token of the sentences `target` (B, T) from their latents (B, L)."""
        return PositionPrediction(column, self, latent, target)


@dataclass(frozen=True, eq=False)
class PositionPrediction:
    """A prediction of the position of each token in its sentence. Only `nll` computes the scores of all positions."""

    column: str
    predictor: PositionPredictor
    latent: Tensor  # (B, L)
    target: Tokens
    role: Role = "position"

    @property
    def name(self) -> str:
        """The name of the prediction's metrics, such as "position/en"."""
        return f"{self.role}/{self.column}"

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the loss, a scalar, and each sentence's sum of the NLLs of its tokens' positions in nats, (B,).
        Positions after the end of a sentence have probability 0."""
        layout, predictor = PackedLayout.of(self.target), self.predictor
        ids, place = layout.pack(self.target.ids), layout.columns  # (R,)
        words = predictor.table(ids)
        scores = exact(predictor.scores(predictor.perceptron(torch.cat([words, layout.repeat(self.latent)], dim=-1))))
        count, places = scores.shape[1], torch.arange(scores.shape[1], device=scores.device)
        length = layout.repeat(self.target.mask.sum(1)) - 1  # length of the token's sentence, without EOS
        log_p = scores.masked_fill(places >= length[:, None].clamp(min=1), -torch.inf).log_softmax(-1)
        counts = (ids != EOS) & (place < count)
        gold = log_p.gather(1, torch.where(counts, place, 0)[:, None]).squeeze(1)
        cost = layout.sum(torch.where(counts, -gold, 0.0))  # (B,)
        return cost.sum(), cost.detach()
