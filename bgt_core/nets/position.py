"""Predict the position of a word in its sentence from the word and the syntactic latent (Chen et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import EOS, Role, Tokens
from bgt_core.errors import check_least
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import exact, lookup
from bgt_core.nets.mlp_output import Perceptron


class PositionPredictor(nn.Module):
    """Scores of `positions` positions from [word ; latent] by a perceptron.

    The word is its row of `table`, which is also the input table of the latent's encoder, and so is trained by this
    loss. EOS is not a word, and words past the last position are skipped.
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
    """The predicted position of each word; computed when its cost is needed."""

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
        words = lookup(predictor.table, ids)
        scores = exact(predictor.scores(predictor.perceptron(torch.cat([words, layout.repeat(self.latent)], dim=-1))))
        count, places = scores.shape[1], torch.arange(scores.shape[1], device=scores.device)
        length = layout.repeat(self.target.mask.sum(1)) - 1  # words, without EOS
        log_p = scores.masked_fill(places >= length[:, None].clamp(min=1), -torch.inf).log_softmax(-1)
        counts = (ids != EOS) & (place < count)
        gold = log_p.gather(1, torch.where(counts, place, 0)[:, None]).squeeze(1)
        cost = layout.sum(torch.where(counts, -gold, 0.0))  # (B,)
        return cost.sum(), cost.detach()
