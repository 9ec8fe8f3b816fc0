"""Output layers, with Logit fusion and without.

Logit fusion scores the next token from [latent ; features] (paper, sec. 2). The latent's part of the
product is the same at every position, so it is computed once per sentence.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear, linear, matmul_dtype
from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import lookup, nll
from bgt_core.nets.layers import xavier_linear
from bgt_core.nets.prediction import Scorer


class UntiedOutput(nn.Module):
    """W [features ; latent] with its own matrix, V x (H + L), as in the released code."""

    def __init__(self, vocab_size: int, width: int, latent: int):
        super().__init__()
        self.hidden = Linear(width, vocab_size, bias=False)
        self.latent = Linear(latent, vocab_size, bias=False)
        for part in (self.hidden, self.latent):
            nn.init.normal_(part.weight, std=width**-0.5)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `nets.prediction.OutputLayer.scorer`; the latent's part, (B, V), is added to the scores."""
        return Scorer(self.latent(latent), lambda features, bias: self.hidden(features) + bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`."""
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
        """See `nets.prediction.OutputLayer.scorer`; the latent's part, (B, H), is added to the features."""
        return Scorer(self.project(latent), lambda features, bias: linear(features + bias, self.table.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`."""
        return nll(self.fuse(features, latent, target), self.table.weight, None, target, smoothing)

    def fuse(self, features: Tensor, latent: Tensor, target: Tokens) -> Tensor:
        """features + P latent: (N, H), (B, L) -> (N, H)."""
        return features + PackedLayout.of(target).repeat(self.project(latent))


def unknown(layer: object, ids: Tensor) -> Tensor:
    """Which of these ids, (N,), a layer scores as the unknown token: (N,) bool.

    That token itself, and for a language's layer those that never occurred in its training text, of probability 0.
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
        """Score only these tokens, (V,) bool, EOS, the unknown token, and those that it already scores."""
        self.occurs.copy_(occurs if self.occurs.all() else occurs | self.occurs)
        self.occurs[[UNK, EOS]] = True
        self.occurs[[PAD, BOS]] = False  # never generated; the table has no gradient for PAD

    @property
    def tokens(self) -> Tensor:
        """Their ids, (U,)."""
        if self.occurs.is_meta:  # on the meta device only shapes are needed
            return torch.arange(len(self.occurs), device="meta")
        return self.occurs.nonzero().squeeze(1)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `nets.prediction.OutputLayer.scorer`; -inf for tokens that don't occur."""
        tokens = self.tokens
        rows = lookup(self.tied.table, tokens)
        rows = rows.to(matmul_dtype(rows))  # once: autocast would convert them for each token

        def score(features: Tensor, bias: Tensor) -> Tensor:
            scores = linear(features + bias, rows)
            everything = scores.new_full((*scores.shape[:-1], len(self.occurs)), -torch.inf)
            return everything.scatter_(-1, tokens.expand_as(scores), scores)

        return Scorer(self.tied.project(latent), score)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`."""
        number = self.occurs.cumsum(0) - 1  # (V,): the index of a token among those that occur
        number = torch.where(self.occurs, number, number[UNK])
        own = replace(target, ids=number[target.ids])
        fused = self.tied.fuse(features, latent, target)
        return nll(fused, lookup(self.tied.table, self.tokens), None, own, smoothing)


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
        """See `nets.prediction.OutputLayer.scorer`; the latent's part is empty, (B, 0)."""
        return Scorer(latent[:, :0], lambda features, _: linear(features, self.matrix.weight))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`."""
        return nll(features, self.matrix.weight, None, target, smoothing)
