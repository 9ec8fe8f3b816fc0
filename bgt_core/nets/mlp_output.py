"""Output layers that are perceptrons: over a decoder's states, or over the latent alone, a bag of words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import EOS, Role, Tokens
from bgt_core.errors import check_least
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import exact, nll
from bgt_core.nets.prediction import Scorer, SentencePrediction


class Perceptron(nn.Module):
    """A number of layers of Linear and ReLU, all but the first from `width` to `width`."""

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
        """(B, L) -> (B, hidden): added to the first map's."""
        return self.latent(latent[:, -self.latent.in_features :])

    def hidden(self, features: Tensor, latent_bias: Tensor) -> Tensor:
        """(..., H), (..., hidden) -> (..., hidden)."""
        return self.perceptron.after_first(self.perceptron.first(features) + latent_bias)

    def scorer(self, latent: Tensor) -> Scorer:
        """See `nets.prediction.OutputLayer.scorer`."""
        return Scorer(self.project_latent(latent), lambda features, bias: self.matrix(self.hidden(features, bias)))

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`."""
        hidden = self.hidden(features, PackedLayout.of(target).repeat(self.project_latent(latent)))
        return nll(hidden, self.matrix.weight, None, target, smoothing)


class BagOfWords(nn.Module):
    """p(sentence | latent) as if its tokens were drawn independently from softmax(W MLP(latent)); EOS is not one of
    them.

    It knows which tokens a sentence has but not their order, so it has a likelihood and can't generate.
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
        """See `nets.prediction.OutputLayer.scorer`: every token has the scores of its sentence, (B, V)."""
        return Scorer(self.matrix(self.perceptron(latent)), lambda features, bias: bias)

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        """See `nets.prediction.OutputLayer.nll`; one softmax per sentence, no cost of EOS, no label smoothing."""
        layout = PackedLayout.of(target)
        log_p = exact(self.matrix(self.perceptron(latent))).log_softmax(-1)  # (B, V)
        ids = layout.pack(target.ids)  # (N,)
        cost = layout.sum(-log_p[layout.rows, ids] * (ids != EOS))  # (B,)
        return cost.sum(), cost.detach()
