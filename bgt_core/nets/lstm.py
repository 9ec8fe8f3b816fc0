"""LSTM bodies: the mean of a BiLSTM's states, its two last states, and the last state of a forward LSTM.

On a CPU torch's LSTM uses oneDNN for padded sentences, and a loop two to three times slower for packed ones
(`pack_padded_sequence`); batches of similar lengths have little padding. Padding is on the right, so reading
forward never meets it first; to read backward, each sentence is reversed within its own length.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.device import resolve
from bgt_core.errors import UsageError, check_least
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.fast.packing import PackedLayout
from bgt_core.nets.forms import exact, lookup


class LSTM(nn.LSTM):
    """torch's LSTM, in single precision on a CPU without 16-bit arithmetic, for which oneDNN has no other LSTM."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """As `nn.LSTM`."""
        device = self.weight_ih_l0.device
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
        x = self.dropout(lookup(self.table, side.ids))  # (B, T, H)
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
        states = self.lstm(self.dropout(lookup(self.table, side.ids)))[0]  # (B, T, H)
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
        x = self.dropout(lookup(self.table, side.ids))  # (B, T, H)
        both = self.forward_lstm(x)[0], self.backward_lstm(flip(x, mirrored(side.mask)))[0]  # (B, T, width)
        rows, last = torch.arange(len(x), device=x.device), side.mask.sum(1) - 1
        return torch.cat([states[rows, last] for states in both], dim=-1)


def mirrored(mask: Tensor) -> Tensor:
    """The index of each position's mirror image in its sentence among the B x T; padding stays: (B, T) -> (B * T,)."""
    batch, length = mask.shape
    columns = torch.arange(length, device=mask.device)
    last = mask.sum(1, keepdim=True) - 1  # (B, 1)
    rows = torch.arange(batch, device=mask.device)[:, None] * length
    return (rows + torch.where(mask, last - columns, columns)).flatten()


def flip(x: Tensor, mirror: Tensor) -> Tensor:
    """Reverse every sentence, (B, T, H) -> (B, T, H); doing it twice changes nothing."""
    return x.flatten(0, 1).index_select(0, mirror).view(x.shape)
