"""A BGT training step in plain PyTorch, computed as in the original fairseq code: the "straight form".

Benchmarks compare our speed with its speed, and tests compare our losses and gradients with its losses and gradients.
The straight form computes all logits, also at padded positions. It concatenates the latent to each token before each
fusion and before the output layer. It encodes one language at a time, uses torch's dropout, and updates one parameter
at a time.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import autocast
from bgt_core.contracts import EOS, PAD, SEMANTIC, Batch, Outputs, Tokens
from bgt_core.models.bgt import BGT
from bgt_core.nets.encoders import ResidualPooling
from bgt_core.nets.layers import sinusoids
from bgt_core.objectives import Sum

SMOOTHING, DROPOUT, ANNEAL, CLIP = 0.1, 0.3, 0.5, 25.0


class StraightBGT(nn.Module):
    """Compute the loss of a `bgt` model in nats, summed over a batch. It uses the parameters of the model itself.

    Only the matrices that fuse features x with a latent z are copied: the model has one for x and one for z, but this
    form multiplies one matrix with [x ; z]. `auxiliary` are additional objectives on the semantic posteriors.
    """

    def __init__(self, model: BGT, dropout: float, auxiliary: Sequence[Sum] = ()):
        super().__init__()
        self.model, self.dropout, self.auxiliary, self.first_position = model, dropout, auxiliary, 0
        decoders = {f"decoders.{lang}": decoder for lang, decoder in model.decoders.items()}
        decoders |= {f"translators.{lang}": decoder for lang, decoder in model.translators.items()}
        self.fused: dict[str, tuple[nn.Linear, nn.Linear]] = {}
        for name, decoder in decoders.items():
            self.fused[f"{name}.layer"] = decoder.layer.hidden, decoder.layer.latent
            for number, layer in enumerate(decoder.layers):
                self.fused[f"{name}.layers.{number}"] = layer.fuse_hidden, layer.fuse_latent
        self.both = nn.ParameterDict()
        for name, (hidden, latent) in self.fused.items():
            whole = torch.cat([hidden.weight, latent.weight], dim=1).detach()
            self.both[name.replace(".", "/")] = nn.Parameter(whole)

    def parameters_used(self) -> list[nn.Parameter]:
        """Return the parameters that this loss uses: its fused matrices, and the other parameters of the model."""
        parts = {id(part.weight) for pair in self.fused.values() for part in pair}
        return [*self.both.values(), *(p for p in self.model.parameters() if id(p) not in parts)]

    def gradients(self) -> dict[str, Tensor]:
        """Return the expected gradient of each parameter of the model. The gradient of a fused matrix is cut in two."""
        gradients = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        names = {id(p): name for name, p in self.model.named_parameters()}
        for name, (hidden, latent) in self.fused.items():
            whole = self.both[name.replace(".", "/")].grad
            gradients[names[id(hidden.weight)]] = whole[:, : hidden.in_features]
            gradients[names[id(latent.weight)]] = whole[:, hidden.in_features :]
        return gradients

    def forward(self, batch: Batch, anneal: float = ANNEAL, smoothing: float = SMOOTHING) -> Tensor:
        model, total = self.model, torch.zeros((), device=batch.sides[batch.anchor].ids.device)
        meaning = {lang: self.encode(SEMANTIC, side) for lang, side in batch.sides.items()}
        own = {lang: self.encode(lang, side) for lang, side in batch.sides.items()}
        shared = model.readout(meaning[batch.anchor])
        for lang, side in batch.sides.items():
            latent = torch.cat([model.readout(own[lang]), shared], dim=-1)
            total = total + self.decode(f"decoders.{lang}", model.decoders[lang], latent, side, 0.0)
        for lang, side in batch.sides.items():
            source = meaning[batch.source(lang)].mean
            total = total + self.decode(f"translators.{lang}", model.translators[lang], source, side, smoothing)
        for posterior in (meaning[batch.anchor], *own.values()):
            total = total + anneal * posterior.kl().sum()
        for objective in self.auxiliary:
            total = total + objective(Outputs(meaning, {}), 1).total
        return total

    def encode(self, name: str, side: Tokens) -> object:
        encoder = self.model.encoders[name]
        corrects = isinstance(encoder.body, ResidualPooling)
        body = encoder.body.body if corrects else encoder.body
        x = self.words(body.words.table, side.ids)
        hidden = ~side.mask[:, None, None, :]
        for layer in body.layers:
            x = layer.norm_attention(x + self.drop(attend(layer.attention, x, hidden)))
            x = layer.norm_feed(x + self.drop(feed(layer.feed, x)))
        real = side.mask[:, :, None].float()
        mean = (x * real).sum(1) / real.sum(1)
        return encoder.head(encoder.body.average(side) + linear(encoder.body.correction, mean) if corrects else mean)

    def decode(self, name: str, decoder: nn.Module, latent: Tensor, side: Tokens, smoothing: float) -> Tensor:
        past = F.pad(side.ids[:, :-1], (1, 0), value=EOS)
        x, length = self.words(decoder.words.table, past), past.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        z = latent[:, None, :].expand(-1, length, -1)
        for number, layer in enumerate(decoder.layers):
            x = layer.norm_attention(x + self.drop(attend(layer.attention, x, later)))
            weight, bias = self.both[f"{name}.layers.{number}".replace(".", "/")], layer.fuse_hidden.bias
            x = layer.norm_fuse(x + self.drop(F.linear(torch.cat([x, z], dim=-1), weight, bias)))
            x = layer.norm_feed(x + self.drop(feed(layer.feed, x)))
        scores = torch.cat([x, z], dim=-1) @ self.both[f"{name}.layer".replace(".", "/")].T  # (B, T, V)
        log_probabilities = F.log_softmax(scores, dim=-1)
        gold = -log_probabilities.gather(2, side.ids[:, :, None]).squeeze(2)
        loss = (1 - smoothing) * gold - smoothing * log_probabilities.mean(-1) if smoothing else gold
        return loss.masked_fill(side.ids == PAD, 0.0).sum()

    def words(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        x = table(ids) * math.sqrt(table.embedding_dim)
        return self.drop(x + sinusoids(self.first_position, ids.shape[1], x))

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


def attend(attention: nn.Module, x: Tensor, hidden: Tensor) -> Tensor:
    """Compute multi-head self-attention by two batched products and a softmax. `hidden` marks masked positions."""
    batch, length, width = x.shape
    parts = linear(attention.qkv, x).chunk(3, dim=-1)
    q, k, v = (part.view(batch, length, attention.heads, -1).transpose(1, 2) for part in parts)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -torch.inf)
    mixed = scores.softmax(-1) @ v
    return linear(attention.out, mixed.transpose(1, 2).reshape(batch, length, width))


def feed(layer: nn.Sequential, x: Tensor) -> Tensor:
    """Compute the feed-forward network of a layer."""
    first, _, second = layer
    return linear(second, F.relu(linear(first, x)))


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply a linear layer with torch's function instead of the model's own implementation."""
    return F.linear(x, layer.weight, layer.bias)


def optimizer(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Return AdamW. On a CPU, it updates one parameter at a time; on a GPU, torch decides."""
    foreach = False if parameters[0].device.type == "cpu" else None
    return torch.optim.AdamW(parameters, lr=5e-4, betas=(0.9, 0.98), weight_decay=1e-4, foreach=foreach)


def run(loss_of: Callable[[Batch], Tensor], batch: Batch, pairs: int, precision: str) -> Tensor:
    """Compute the loss per pair, add its gradients to the parameters, and return the loss."""
    with autocast(batch.sides[batch.anchor].ids.device, precision):
        loss = loss_of(batch) / pairs
    loss.backward()
    return loss.detach()


def relative_errors(
    loss: float, expected: float, gradients: Mapping[str, tuple[Tensor, Tensor]]
) -> tuple[float, float, tuple[float, str]]:
    """Return three relative errors: of the loss, of all gradients together, and of the parameter with the largest error
    (with its name). `gradients` maps the name of a parameter to its gradient and the expected gradient."""
    off = {name: (gradient - slope).norm().item() for name, (gradient, slope) in gradients.items()}
    size = {name: slope.norm().item() for name, (_, slope) in gradients.items()}
    worst = max((off[name] / size[name], name) for name in off if size[name])
    return abs(loss - expected) / abs(expected), math.hypot(*off.values()) / math.hypot(*size.values()), worst


@dataclass(frozen=True, eq=False)
class Form:
    """One implementation of a training step in micro-batches, with methods that measure its time."""

    step: Callable[[int], object]  # runs a micro-batch forward and backward; number 0 has the shortest sentences
    tokens: Sequence[int]  # number of tokens in each micro-batch, without padding
    parameters: Sequence[nn.Parameter]  # the parameters that have gradients
    optimizer: torch.optim.Optimizer
    clip: float

    def seconds(self, share: float, clock: Callable[[], float]) -> float:
        """Return the seconds per token of one micro-batch. `share` is its position in the step (0: start, 1: end)."""
        number = int(share * len(self.tokens))
        self.fill_gradients(0.0)  # not None, because most micro-batches add to the gradients of earlier ones
        begun = clock()
        self.step(number)
        spent = clock() - begun
        self.fill_gradients(None)
        return spent / self.tokens[number]

    def update_seconds(self, clock: Callable[[], float]) -> float:
        """Return the seconds per token of clipping and Adam, without the first run, which allocates Adam's moments."""
        spent = []
        for group in self.optimizer.param_groups:
            group["lr"] = 0.0
        for _ in range(3):
            self.fill_gradients(1e-3)
            begun = clock()
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
            self.optimizer.step()
            self.optimizer.zero_grad()
            spent.append(clock() - begun)
        self.optimizer.state.clear()  # the moments of all implementations together would not fit into memory
        return median(spent[1:]) / sum(self.tokens)

    def fill_gradients(self, value: float | None) -> None:
        """Set all gradients to a value, or free them if the value is None: the gradients of all compared
        implementations together would not fit into memory."""
        for parameter in self.parameters:
            parameter.grad = None if value is None else torch.full_like(parameter, value)
