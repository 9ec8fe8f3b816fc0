"""LSTM encoders and decoders, and the places where a latent can enter them.

The LSTMs read padded sentences: for these, torch's LSTM uses oneDNN on a CPU, and for packed ones
(`pack_padded_sequence`) a loop that is two to three times slower. Batches of similar lengths have little padding. It is
on the right, after all real tokens; for the backward direction, each sentence is reversed within its own length.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bgt_core.backend import resolve
from bgt_core.contracts import Role, Tokens
from bgt_core.errors import UsageError, check_least
from bgt_core.nets.layers import Dropout, shift_right, xavier_linear
from bgt_core.nets.operations import PackedLayout, exact
from bgt_core.nets.output import OutputLayer, Scorer, SentencePrediction


class LSTM(nn.LSTM):
    """torch's LSTM, in single precision on a CPU without 16-bit arithmetic, for which oneDNN has no other LSTM."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """As `nn.LSTM`."""
        device = self.weight_ih_l0.device
        if device.type == "meta":  # only shapes are needed, so one step is enough; torch would loop over all in Python
            output, state = super().forward(input[:, :1], hx)
            return output.expand(-1, input.shape[1], -1), state
        if device.type != "cpu" or not torch.is_autocast_enabled("cpu") or resolve(device, "auto") == "bf16":
            return super().forward(input, hx)
        with torch.autocast("cpu", enabled=False):
            return super().forward(exact(input), None if hx is None else (exact(hx[0]), exact(hx[1])))


class BiLSTM(nn.Module):
    """An encoder's body: the mean over all real positions, EOS included, of [forward ; backward] (paper, app. A).

    Each direction has half the table's width, so a sentence vector is as wide as in the other bodies (paper: 512 of
    1024). Dropout is applied to the words and to each layer's output.
    """

    def __init__(self, table: nn.Embedding, layers: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        if self.width % 2:
            raise UsageError(f"width {self.width} must be even: each direction of a BiLSTM has half of it")
        check_least(1, encoder_layers=layers)
        self.table, self.dropout = table, Dropout(dropout)
        half = self.width // 2
        self.forward_layers = nn.ModuleList(LSTM(self.width, half, batch_first=True) for _ in range(layers))
        self.backward_layers = nn.ModuleList(LSTM(self.width, half, batch_first=True) for _ in range(layers))

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        layout, mirror = layout or PackedLayout.of(side), mirrored(side.mask)
        x = self.dropout(self.table(side.ids))  # (B, T, H)
        for forward, backward in zip(self.forward_layers, self.backward_layers, strict=True):
            ahead, behind = forward(x)[0], flip(backward(flip(x, mirror))[0], mirror)  # (B, T, H / 2)
            x = self.dropout(torch.cat([ahead, behind], dim=-1))
        return layout.mean(layout.pack(x))


class LastState(nn.Module):
    """An encoder's body: the state of an LSTM after the last token, EOS, as wide as the table."""

    def __init__(self, table: nn.Embedding, dropout: float = 0.0):
        super().__init__()
        self.width = table.embedding_dim
        self.table, self.dropout = table, Dropout(dropout)
        self.lstm = LSTM(self.width, self.width, batch_first=True)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        states = self.lstm(self.dropout(self.table(side.ids)))[0]  # (B, T, H)
        last = side.mask.sum(1) - 1  # (B,)
        return states[torch.arange(len(states), device=states.device), last]


class FinalStates(nn.Module):
    """An encoder's body: [the state of an LSTM after the last token, EOS ; that of a backward LSTM after the first],
    each `width` units wide, whatever the table's width (Deudon 2018)."""

    def __init__(self, table: nn.Embedding, width: int, dropout: float = 0.0):
        super().__init__()
        self.width = 2 * width
        self.table, self.dropout = table, Dropout(dropout)
        self.forward_lstm = LSTM(table.embedding_dim, width, batch_first=True)
        self.backward_lstm = LSTM(table.embedding_dim, width, batch_first=True)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, 2 * width)."""
        x = self.dropout(self.table(side.ids))  # (B, T, H)
        both = self.forward_lstm(x)[0], self.backward_lstm(flip(x, mirrored(side.mask)))[0]  # (B, T, width)
        rows, last = torch.arange(len(x), device=x.device), side.mask.sum(1) - 1
        return torch.cat([states[rows, last] for states in both], dim=-1)


def mirrored(mask: Tensor) -> Tensor:
    """Return the flat index of each position's mirror image in its sentence, (B, T) -> (B * T,). Padding stays."""
    batch, length = mask.shape
    columns = torch.arange(length, device=mask.device)
    last = mask.sum(1, keepdim=True) - 1  # (B, 1)
    rows = torch.arange(batch, device=mask.device)[:, None] * length
    return (rows + torch.where(mask, last - columns, columns)).flatten()


def flip(x: Tensor, mirror: Tensor) -> Tensor:
    """Reverse every sentence, (B, T, H) -> (B, T, H); doing it twice changes nothing."""
    return x.flatten(0, 1).index_select(0, mirror).view(x.shape)


@dataclass(eq=False)
class LSTMState:
    """An LSTM decoder's state in a search over B sentences, n hypotheses each."""

    latent: Tensor  # (B, L)
    scorer: Scorer
    hidden: Tensor  # (layers, B, n, H)
    cell: Tensor  # (layers, B, n, H)
    position: int = 0  # position of the next tokens

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i continue hypothesis parents[:, i], (B, n)."""
        layers, _, _, width = self.hidden.shape
        where = parents[None, :, :, None].expand(layers, -1, -1, width)
        self.hidden, self.cell = self.hidden.gather(2, where), self.cell.gather(2, where)

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        self.latent = self.latent.index_select(0, rows)
        self.scorer.select(rows)
        self.hidden, self.cell = self.hidden.index_select(1, rows), self.cell.index_select(1, rows)


class RecurrentDecoder(nn.Module):
    """p(sentence | latent) by an LSTM that starts from EOS and states of zero; subclasses define its `inputs`."""

    def __init__(self, lstm: nn.LSTM, layer: OutputLayer, dropout: float):
        super().__init__()
        self.lstm, self.layer, self.dropout = lstm, layer, Dropout(dropout)

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict `target` (B, T) from latent (B, L)."""
        inputs = self.inputs(shift_right(target.ids), latent)
        states, _ = self.lstm(inputs, self.initial_state(latent))  # (B, T, H); padding is never in the past
        x = states.flatten(0, 1).index_select(0, target.flat_index)  # (N, H)
        return SentencePrediction(
            role, column, self.features(x, latent, PackedLayout.of(target)), latent, self.layer, target
        )

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        """The input of the LSTM: ids (B, T), latent (B, L) -> (B, T, any)."""
        raise NotImplementedError

    def initial_state(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state and cell before the first token: (B, L) -> (layers, B, H) each."""
        lstm, dtype = self.lstm, next(self.lstm.parameters()).dtype
        zeros = torch.zeros(lstm.num_layers, len(latent), lstm.hidden_size, dtype=dtype, device=latent.device)
        return zeros, zeros

    def features(self, x: Tensor, latent: Tensor, layout: PackedLayout) -> Tensor:
        """The input of the output layer: states (N, H), latent (B, L) -> (N, H)."""
        return self.dropout(x)

    def start(self, latent: Tensor) -> LSTMState:
        """The initial state of a search for each latent, (B, L)."""
        hidden, cell = self.initial_state(latent)
        return LSTMState(latent, self.layer.scorer(latent), hidden[:, :, None], cell[:, :, None])

    def step(self, tokens: Tensor, state: LSTMState) -> Tensor:
        """Score the next token: last tokens of hypotheses (B, n) -> (B, n, V). The first token is EOS."""
        count, n = tokens.shape
        latent = state.latent.repeat_interleave(n, dim=0)  # (B * n, L)
        before = state.hidden.flatten(1, 2), state.cell.flatten(1, 2)
        states, after = self.lstm(self.inputs(tokens.view(-1, 1), latent), before)
        state.hidden, state.cell = (part.view(state.hidden.shape) for part in after)
        state.position += 1
        x = self.features(states[:, 0], latent, PackedLayout.column(tokens.flatten()))
        return state.scorer(x.view(count, n, -1))


class LSTMDecoder(RecurrentDecoder):
    """p(sentence | latent) by an LSTM as wide as its table (paper, sec. 2 and app. A).

    `fuse` names where the latent enters, any of:

    - "word": the input of each step is [word ; z].
    - "hidden": the first hidden state is a linear map of z. Else it is zero.
    - "attention": z takes the place of the context that attention would give. As in Luong et al. (2015, eq. 5), to
      whom the paper's "traditional sequence-to-sequence framework" is taken to refer, the output layer reads
      tanh(Linear([h ; z])). Logit has no tanh.
    - Logit fusion depends on `layer`: all output layers get the latent, but some do not read it.
    """

    def __init__(
        self, table: nn.Embedding, layer: OutputLayer, latent: int, layers: int, dropout: float, fuse: Collection[str]
    ):
        check_least(1, decoder_layers=layers)
        width = table.embedding_dim
        inputs = width + latent if "word" in fuse else width
        between = dropout if layers > 1 else 0.0
        super().__init__(LSTM(inputs, width, layers, batch_first=True, dropout=between), layer, dropout)
        self.table, self.reads_latent = table, "word" in fuse
        self.first_hidden = xavier_linear(latent, layers * width) if "hidden" in fuse else None
        self.fuse_hidden = xavier_linear(width, width) if "attention" in fuse else None
        self.fuse_latent = xavier_linear(latent, width, bias=False) if "attention" in fuse else None

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        words = self.dropout(self.table(ids))
        return torch.cat([words, latent[:, None].expand(-1, ids.shape[1], -1)], dim=-1) if self.reads_latent else words

    def initial_state(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        width, layers = self.lstm.hidden_size, self.lstm.num_layers
        zeros, _ = super().initial_state(latent)
        if self.first_hidden is None:
            return zeros, zeros
        return self.first_hidden(latent).view(-1, layers, width).transpose(0, 1).contiguous().to(zeros.dtype), zeros

    def features(self, x: Tensor, latent: Tensor, layout: PackedLayout) -> Tensor:
        x = super().features(x, latent, layout)
        if self.fuse_hidden is None or self.fuse_latent is None:
            return x
        return torch.tanh(self.fuse_hidden(x) + layout.repeat(self.fuse_latent(latent)))


class TwoLatentDecoder(RecurrentDecoder):
    """p(sentence | syntactic, semantic): the syntactic latent enters at the LSTM's input, the semantic one at its
    output (Chen et al. 2019; with the previous token, as in their decoder for generation).

    The latent is [syntactic ; semantic] (B, L). Its first `syntactic` units are the input of the LSTM beside each
    previous token; if `table` is None they are the only input, and the decoder does not see earlier tokens.
    """

    def __init__(self, table: nn.Embedding | None, layer: OutputLayer, syntactic: int, width: int, dropout: float):
        inputs = syntactic + (table.embedding_dim if table else 0)
        super().__init__(LSTM(inputs, width, batch_first=True), layer, dropout)
        self.table, self.syntactic = table, syntactic

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        read = latent[:, None, : self.syntactic].expand(-1, ids.shape[1], -1)
        return torch.cat([self.dropout(self.table(ids)), read], dim=-1) if self.table else read


class FirstCellDecoder(RecurrentDecoder):
    """p(sentence | z) by an LSTM whose initial cell is z, (B, L), and whose initial hidden state is a trained vector; z
    enters nowhere else (Deudon 2018).

    In training an input token is replaced by one trained vector with probability `word_dropout`, so that z has to
    supply the hidden tokens (Bowman et al. 2016). The initial EOS stays. Each token is drawn independently; the
    released code draws once for all sentences of a batch.
    """

    def __init__(self, table: nn.Embedding, layer: OutputLayer, width: int, dropout: float, word_dropout: float):
        if not 0 <= word_dropout < 1:
            raise UsageError(f"word_dropout {word_dropout} must be from 0 to below 1")
        super().__init__(LSTM(table.embedding_dim, width, batch_first=True), layer, dropout)
        self.table, self.word_dropout = table, word_dropout
        self.hidden_word = nn.Parameter(torch.zeros(table.embedding_dim)) if word_dropout else None
        self.first_hidden = nn.Parameter(torch.zeros(width))

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        words = self.table(ids)
        if self.training and self.hidden_word is not None:
            hidden = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            hidden[:, 0] = False
            words = torch.where(hidden[..., None], self.hidden_word, words)
        return self.dropout(words)

    def initial_state(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        return self.first_hidden.expand(1, len(latent), -1).contiguous(), latent[None].to(self.first_hidden.dtype)
