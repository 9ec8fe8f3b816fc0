"""The LSTM decoder, and the four places where a latent can enter it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.contracts import Role, Tokens
from bgt_core.errors import UsageError
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.gradients import lookup
from bgt_core.nets.layers import shift_right, xavier_linear
from bgt_core.nets.packing import PackedLayout
from bgt_core.nets.prediction import OutputLayer, SentencePrediction


@dataclass(eq=False)
class LSTMState:
    """What an LSTM decoder remembers of a search over B sentences, n hypotheses each."""

    latent: Tensor  # (B, L)
    latent_bias: Tensor  # (B, any), of the output layer
    hidden: Tensor  # (layers, B, n, H)
    cell: Tensor  # (layers, B, n, H)
    position: int = 0  # of the pieces read next

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis i now continues what parents[:, i] was, (B, n)."""
        layers, _, _, width = self.hidden.shape
        where = parents[None, :, :, None].expand(layers, -1, -1, width)
        self.hidden, self.cell = self.hidden.gather(2, where), self.cell.gather(2, where)

    def select(self, rows: Tensor) -> None:
        """Keep these sentences alone."""
        self.latent, self.latent_bias = self.latent.index_select(0, rows), self.latent_bias.index_select(0, rows)
        self.hidden, self.cell = self.hidden.index_select(1, rows), self.cell.index_select(1, rows)


class LSTMDecoder(nn.Module):
    """p(sentence | latent) by an LSTM as wide as its table (paper, sec. 2 and app. A).

    It starts from EOS and a cell of zeros. `fuse` names where the latent enters, any of:

    - "word": the input of each step is [word ; z].
    - "hidden": the first hidden state is a linear map of z. Else it is zero.
    - "attention": z takes the place of the context that attention would give. As in Luong et al. (2015, eq. 5), to
      whom the paper's "traditional sequence-to-sequence framework" is taken to refer, the output layer reads
      tanh(Linear([h ; z])). Logit has no tanh.
    - Logit is the output layer's: `layer` gets the latent as well, or is one that does not read it.
    """

    def __init__(
        self,
        table: nn.Embedding,
        layer: OutputLayer,
        latent: int,
        layers: int,
        dropout: float,
        fuse: Collection[str] = (),
    ):
        super().__init__()
        if layers < 1:
            raise UsageError(f"decoder_layers {layers}: an LSTM needs at least 1")
        width = table.embedding_dim
        self.table, self.dropout = table, Dropout(dropout)
        self.reads_latent = "word" in fuse
        inputs = width + latent if self.reads_latent else width
        self.lstm = nn.LSTM(inputs, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.first_hidden = xavier_linear(latent, layers * width) if "hidden" in fuse else None
        self.fuse_hidden = xavier_linear(width, width) if "attention" in fuse else None
        self.fuse_latent = xavier_linear(latent, width, bias=False) if "attention" in fuse else None
        self.layer = layer

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """What the decoder says of `target` (B, T), given latent (B, L)."""
        inputs = self.inputs(shift_right(target.ids), latent)
        states, _ = self.lstm(inputs, self.initial_state(latent))  # (B, T, H); padding is never in the past
        x = states.flatten(0, 1).index_select(0, target.flat_index)  # (N, H)
        return SentencePrediction(
            role, column, self.features(x, latent, PackedLayout.of(target)), latent, self.layer, target
        )

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        """What the LSTM reads: ids (B, T), latent (B, L) -> (B, T, H) or, with Word fusion, (B, T, H + L)."""
        words = self.dropout(lookup(self.table, ids))
        return torch.cat([words, latent[:, None].expand(-1, ids.shape[1], -1)], dim=-1) if self.reads_latent else words

    def initial_state(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state and cell before the first piece: (B, L) -> (layers, B, H) each."""
        width, layers = self.lstm.hidden_size, self.lstm.num_layers
        zeros = torch.zeros(layers, len(latent), width, dtype=self.table.weight.dtype, device=latent.device)
        if self.first_hidden is None:
            return zeros, zeros
        return self.first_hidden(latent).view(-1, layers, width).transpose(0, 1).contiguous().to(zeros.dtype), zeros

    def features(self, x: Tensor, latent: Tensor, layout: PackedLayout) -> Tensor:
        """What the output layer reads: states (N, H), latent (B, L) -> (N, H)."""
        x = self.dropout(x)
        if self.fuse_hidden is None or self.fuse_latent is None:
            return x
        return torch.tanh(self.fuse_hidden(x) + layout.repeat(self.fuse_latent(latent)))

    def start(self, latent: Tensor) -> LSTMState:
        """A search that has read nothing yet, for each latent, (B, L)."""
        hidden, cell = self.initial_state(latent)
        return LSTMState(latent, self.layer.project_latent(latent), hidden[:, :, None], cell[:, :, None])

    def step(self, pieces: Tensor, state: LSTMState) -> Tensor:
        """The last piece of each hypothesis, (B, n) -> scores of the next, (B, n, V); the first piece is EOS."""
        count, n = pieces.shape
        latent = state.latent.repeat_interleave(n, dim=0)  # (B * n, L)
        before = state.hidden.flatten(1, 2), state.cell.flatten(1, 2)
        states, after = self.lstm(self.inputs(pieces.view(-1, 1), latent), before)
        state.hidden, state.cell = (part.view(state.hidden.shape) for part in after)
        state.position += 1
        x = self.features(states[:, 0], latent, PackedLayout.column(pieces.flatten()))
        return self.layer.logits(x.view(count, n, -1), state.latent_bias[:, None])
