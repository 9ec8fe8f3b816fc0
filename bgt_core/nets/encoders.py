"""Encoders: a "body" maps a sentence to a vector, and a "head" maps this vector to a posterior.

The bodies in this module average token vectors. The bodies in `nets.layers` and `nets.lstm` are Transformers and LSTMs.
"""

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import Int8Linear, Linear, linear
from bgt_core.contracts import EOS, UNK, Posterior, Tokens
from bgt_core.nets.layers import Dropout, make_embedding
from bgt_core.nets.operations import PackedLayout, exact
from bgt_core.posterior import Gaussian, Point, VonMisesFisher


class MeanPooling(nn.Module):
    """The mean of token vectors, without EOS and unknown tokens, as in the model SP of Wieting et al. (2019). Sentences
    of only unknown tokens get the zero vector; in the released code, they get the vector of the unknown token."""

    def __init__(self, table: nn.Embedding, dropout: float = 0.0):
        super().__init__()
        self.width = table.embedding_dim
        self.table, self.dropout = table, Dropout(dropout)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        ids = layout.pack(side.ids)  # (R,)
        return mean_of_words(self.dropout(self.table(ids)), ids, layout)


def mean_of_words(vectors: Tensor, ids: Tensor, layout: PackedLayout) -> Tensor:
    """Average the token vectors (R, H) of each sentence without EOS and unknown tokens: (B, H). A sentence without
    other tokens gets the zero vector."""
    counts = (ids != EOS) & (ids != UNK)
    total = layout.sum(vectors * counts[:, None])  # (B, H)
    return total / layout.sum(counts).clamp(min=1)[:, None]


class SIFPooling(nn.Module):
    """The mean of token vectors of length 1, each weighted by a / (a + p), where p is the token's probability.

    These are the weights of Arora et al. (2017, SIF): a rare token counts more. The probabilities come from the
    tokenizer's unigram model. The weights are fixed unless `trained` is true. With a margin loss, trained weights are
    worse for semantic similarity; with a teacher's vectors, they can be better. EOS is ignored, because its share of
    the mean would encode the length of the sentence.
    """

    rarity: Tensor

    def __init__(self, probabilities: Tensor, width: int, smooth: float = 5e-4, trained: bool = False):
        super().__init__()
        self.width = width
        self.table = make_embedding(len(probabilities), width)
        rarity = smooth / (smooth + probabilities)  # (V,)
        if trained:
            self.rarity = nn.Parameter(rarity.float())
        else:
            self.register_buffer("rarity", rarity, persistent=False)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return self.pool(*self.words(side, layout), layout)

    def words(self, side: Tokens, layout: PackedLayout) -> tuple[Tensor, Tensor]:
        """Return token vectors of length 1, and token weights: Tokens (B, T) -> (R, H), (R,). EOS has weight 0."""
        ids = layout.pack(side.ids)  # (R,)
        weights = self.rarity[ids] * (ids != EOS) * math.sqrt(self.width)  # so units of rare tokens have variance 1
        return F.normalize(self.table(ids)), weights

    def pool(self, vectors: Tensor, weights: Tensor, layout: PackedLayout) -> Tensor:
        """Multiply token vectors (R, H) by their weights (R,), and average them for each sentence: (B, H)."""
        return layout.sum(vectors * weights[:, None]) / layout.sum(weights > 0).clamp(min=1)[:, None]


class ResidualPooling(nn.Module):
    """An average plus a linear map of a Transformer's vector: average + W body, with W = 0 before training.

    An average is a good encoder before training; a Transformer needs many updates to become good. Before training, this
    body returns the average; in training, it learns a correction.
    """

    def __init__(self, average: SIFPooling, body: nn.Module):
        super().__init__()
        self.width = average.width
        self.average, self.body = average, body
        self.correction = Linear(body.width, average.width, bias=False)  # type: ignore[arg-type]
        nn.init.zeros_(self.correction.weight)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        return self.average(side, layout) + self.correction(self.body(side, layout))


STD = 0.1  # standard deviation of GRAN's initial weights; biases start at 0 (Lasagne's defaults, as in released code)


class GRAN(MeanPooling):
    """The gated recurrent averaging network (Wieting and Gimpel 2017; Wieting et al. 2017, sec. 4.1).

    It averages x_t * sigmoid(W_x x_t + W_h h_t + b). Here x_t are the token vectors after dropout, and h_t are the
    states of an LSTM. The LSTM reads all tokens; the average skips EOS and unknown tokens, as in `MeanPooling`.
    """

    def __init__(self, table: nn.Embedding, dropout: float = 0.0):
        super().__init__(table, dropout)
        self.lstm = PeepholeLSTM(self.width, self.width)
        self.gate_words = Linear(self.width, self.width)  # weights W_x and bias b
        self.gate_states = Linear(self.width, self.width, bias=False)  # W_h
        for layer in (self.gate_words, self.gate_states):
            start(layer)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout = layout or PackedLayout.of(side)
        ids = layout.pack(side.ids)  # (R,)
        words = self.dropout(self.table(ids))  # (R, H)
        gate = torch.sigmoid(exact(self.gate_words(words) + self.gate_states(self.lstm(words, layout))))
        return mean_of_words(words * gate, ids, layout)


class PeepholeLSTM(nn.Module):
    """One layer of an LSTM whose gates also read the cell (Gers and Schmidhuber 2000). Initial states are zero.

        i_t = sigmoid(W_i [x_t ; h_t-1] + p_i * c_t-1 + b_i)      input gate
        f_t = sigmoid(W_f [x_t ; h_t-1] + p_f * c_t-1 + b_f)      forget gate
        c_t = f_t * c_t-1 + i_t * tanh(W_c [x_t ; h_t-1] + b_c)   cell
        o_t = sigmoid(W_o [x_t ; h_t-1] + p_o * c_t + b_o)        output gate
        h_t = o_t * tanh(c_t)                                     state

    The rows of each weight matrix are in ONNX's order: i, o, f, c.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.width = width
        self.inputs = Linear(inputs, 4 * width)
        self.recurrence = nn.Parameter(torch.empty(4 * width, width))
        self.peepholes = nn.Parameter(torch.empty(3, width))  # p_i, p_o and p_f
        start(self.inputs)
        for weight in (self.recurrence, self.peepholes):
            nn.init.normal_(weight, std=STD)

    def forward(self, x: Tensor, layout: PackedLayout) -> Tensor:
        """Compute the state after each token from token vectors: (R, inputs) -> (R, H), in float32 or float64."""
        if torch.onnx.is_in_onnx_export():
            return layout.pack(self.exported(layout.unpack(x)))
        parts = [part for *_, part in layout.length_blocks]
        sums = self.inputs(x).split([len(part.flat_index) for part in parts])  # (R, 4 * H), split by sentence length
        return torch.cat([part.pack(self.states(part.unpack(own))) for part, own in zip(parts, sums, strict=True)])

    def states(self, sums: Tensor) -> Tensor:
        """Compute the states (B, T, H) from W x_t + b of the gates and the cell, (B, T, 4 * H). Padding must be on the
        right; the states computed at padding are to be ignored."""
        peep_i, peep_o, peep_f = self.peepholes
        hidden = cell = exact(sums.new_zeros(len(sums), self.width))  # (B, H)
        states = []
        for step in sums.unbind(1):
            i, o, f, c = exact(step + linear(hidden, self.recurrence)).chunk(4, dim=1)
            entering = torch.sigmoid(torch.addcmul(i, peep_i, cell))
            staying = torch.sigmoid(torch.addcmul(f, peep_f, cell))
            cell = torch.addcmul(staying * cell, entering, torch.tanh(c))
            hidden = torch.sigmoid(torch.addcmul(o, peep_o, cell)) * torch.tanh(cell)
            states.append(hidden)
        return torch.stack(states, 1)

    def exported(self, x: Tensor) -> Tensor:
        """Compute the states with ONNX's LSTM operator: (B, T, inputs) -> (B, T, H). The loop over T in `states` can't
        be exported for a variable T."""
        batch, length, _ = x.shape
        bias = torch.cat([self.inputs.bias, torch.zeros_like(self.inputs.bias)])  # zeros for the recurrence's bias
        weights = [weight[None] for weight in (self.inputs.weight, self.recurrence, bias)]
        peepholes = self.peepholes.reshape(1, -1)
        states = torch.onnx.ops.symbolic(
            "::LSTM",
            (x.transpose(0, 1), *weights, None, None, None, peepholes),
            {"hidden_size": self.width},
            dtype=x.dtype,
            shape=(length, 1, batch, self.width),
        )
        return states[:, 0].transpose(0, 1)


def start(layer: Linear) -> None:
    """Draw a layer's initial weights from N(0, STD^2), and set its bias to 0."""
    nn.init.normal_(layer.weight, std=STD)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


class GaussianHead(nn.Module):
    """A Gaussian posterior: its mean and its log-variance are linear maps of the sentence vector.

    `log_variance` is the initial log-variance. If it is 0, the posterior is initially as wide as the prior; a decoder
    then reads mostly noise until training has made the posterior narrower. By default, the linear maps have no bias, as
    in the BGT authors' code.
    """

    def __init__(self, width: int, latent: int, log_variance: float = 0.0, bias: bool = False):
        super().__init__()
        self.mean = Linear(width, latent, bias=bias)
        self.log_variance = Linear(width, latent, bias=bias)
        self.start = log_variance

    def forward(self, features: Tensor) -> Gaussian:
        """Map sentence vectors (B, H) to a posterior over latents (B, L)."""
        return Gaussian(self.mean(features), self.log_variance(features) + self.start)


class VonMisesFisherHead(nn.Module):
    """A von Mises-Fisher posterior. Its mean direction is a linear map of the sentence vector, scaled to length 1. Its
    concentration is softplus(x) + 1, where x is another linear map, as in the released code of Chen et al. (2019)."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.mean = Linear(width, latent)
        self.concentration = Linear(width, 1)

    def forward(self, features: Tensor) -> VonMisesFisher:
        """Map sentence vectors (B, H) to a posterior over latents (B, L)."""
        mean, raw = exact(self.mean(features)), exact(self.concentration(features))
        return VonMisesFisher(F.normalize(mean, dim=-1), F.softplus(raw).squeeze(-1) + 1)


class SharedVarianceHead(nn.Module):
    """A Gaussian posterior whose mean is the sentence vector. Its log-variances are the same for all sentences."""

    def __init__(self, latent: int, log_variance: float = 0.0):
        super().__init__()
        self.log_variance = nn.Parameter(torch.full((latent,), log_variance))

    def forward(self, features: Tensor) -> Gaussian:
        """Map sentence vectors (B, L) to a posterior over latents (B, L)."""
        return Gaussian(features, self.log_variance.expand_as(features))


class PointHead(nn.Module):
    """A posterior without a variance or a prior: its mean is a linear map of the sentence vector, without a bias."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.mean = Linear(width, latent, bias=False)

    def forward(self, features: Tensor) -> Point:
        """Map sentence vectors (B, H) to posteriors that are points, (B, L)."""
        return Point(self.mean(features))


class NoLatent(nn.Module):
    """The encoder of a latent with 0 units, in a model that does not use this latent. Its KL is 0."""

    def forward(self, side: Tokens) -> Point:
        """Return an empty posterior: Tokens (B, T) -> posterior over (B, 0)."""
        return Point(side.ids.new_zeros(len(side.ids), 0, dtype=torch.float32))


class Encoder(nn.Module):
    """An encoder q(z | sentence) = head(body(sentence)). With the head `Point`, the posterior mean is the body's
    vector.

    A body maps `Tokens` (B, T) to vectors (B, H). The caller may also pass the layout of the tokens (`PackedLayout`).
    """

    def __init__(self, body: nn.Module, head: Callable[[Tensor], Posterior]):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Posterior:
        """Encode sentences as posteriors: Tokens (B, T) -> posterior over (B, L)."""
        return self.head(self.body(side) if layout is None else self.body(side, layout))


def quantised(encoder: Encoder) -> Encoder:
    """Return a copy of the encoder with linear layers in 8 bits in its body. All else is shared with `encoder`."""
    return Encoder(_replaced(encoder.body), encoder.head)


def _replaced(module: nn.Module) -> nn.Module:
    if isinstance(module, Linear):
        return Int8Linear(module)
    replaced = copy.copy(module)
    replaced._modules = {name: None if part is None else _replaced(part) for name, part in module._modules.items()}
    return replaced
