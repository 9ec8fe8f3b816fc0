"""LSTM encoders, and LSTM decoders that read a latent.

All LSTMs read padded sentences, because torch's LSTM for packed sequences (`pack_padded_sequence`) is two to three
times slower on a CPU. Padding is on the right, so no state of a real token depends on it. A backward LSTM reads
reversed sentences, whose padding stays on the right.
"""

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
    """torch's LSTM. On CPUs without bf16 instructions, it computes in float32 even under autocast, because oneDNN has
    no bf16 LSTM for such CPUs."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Apply `nn.LSTM.forward`, in float32 if the CPU has no bf16 instructions."""
        device = self.weight_ih_l0.device
        if device.type == "meta":  # compute one step, because only shapes matter, and torch would loop in Python
            output, state = super().forward(input[:, :1], hx)
            return output.expand(-1, input.shape[1], -1), state
        if device.type != "cpu" or not torch.is_autocast_enabled("cpu") or resolve(device, "auto") == "bf16":
            return super().forward(input, hx)
        with torch.autocast("cpu", enabled=False):
            return super().forward(exact(input), None if hx is None else (exact(hx[0]), exact(hx[1])))


class BiLSTM(nn.Module):
    """A bidirectional LSTM as an encoder (BGT paper, app. A). The sentence vector is the mean of the states [forward ;
    backward] over all tokens, EOS included, and is as wide as token vectors."""

    def __init__(self, table: nn.Embedding, layers: int, dropout: float):
        super().__init__()
        self.width = table.embedding_dim
        if self.width % 2:
            raise UsageError(f"width {self.width} must be even: each direction of a BiLSTM has half of the units")
        check_least(1, encoder_layers=layers)
        self.table, self.dropout = table, Dropout(dropout)
        half = self.width // 2
        self.forward_layers = nn.ModuleList(LSTM(self.width, half, batch_first=True) for _ in range(layers))
        self.backward_layers = nn.ModuleList(LSTM(self.width, half, batch_first=True) for _ in range(layers))

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        layout, mirror = layout or PackedLayout.of(side), mirrored(side.mask)
        x = self.dropout(self.table(side.ids))  # (B, T, H)
        for forward, backward in zip(self.forward_layers, self.backward_layers, strict=True):
            ahead, behind = forward(x)[0], flip(backward(flip(x, mirror))[0], mirror)  # (B, T, H / 2) each
            x = self.dropout(torch.cat([ahead, behind], dim=-1))
        return layout.mean(layout.pack(x))


class LastState(nn.Module):
    """An LSTM as an encoder: the sentence vector is the state after EOS, which is as wide as a token vector."""

    def __init__(self, table: nn.Embedding, dropout: float = 0.0):
        super().__init__()
        self.width = table.embedding_dim
        self.table, self.dropout = table, Dropout(dropout)
        self.lstm = LSTM(self.width, self.width, batch_first=True)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, H)."""
        states = self.lstm(self.dropout(self.table(side.ids)))[0]  # (B, T, H)
        last = side.mask.sum(1) - 1  # (B,)
        return states[torch.arange(len(states), device=states.device), last]


class FinalStates(nn.Module):
    """A forward and a backward LSTM as an encoder (Deudon 2018). The sentence vector is [state of the forward
    LSTM after EOS ; state of the backward LSTM after the first token]. Each state has `width` units."""

    def __init__(self, table: nn.Embedding, width: int, dropout: float = 0.0):
        super().__init__()
        self.width = 2 * width
        self.table, self.dropout = table, Dropout(dropout)
        self.forward_lstm = LSTM(table.embedding_dim, width, batch_first=True)
        self.backward_lstm = LSTM(table.embedding_dim, width, batch_first=True)

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Tensor:
        """Encode sentences as vectors: Tokens (B, T) -> (B, 2 * width)."""
        x = self.dropout(self.table(side.ids))  # (B, T, H)
        both = self.forward_lstm(x)[0], self.backward_lstm(flip(x, mirrored(side.mask)))[0]  # (B, T, width) each
        rows, last = torch.arange(len(x), device=x.device), side.mask.sum(1) - 1
        return torch.cat([states[rows, last] for states in both], dim=-1)


def mirrored(mask: Tensor) -> Tensor:
    """Return the index that reverses each sentence and leaves its padding at the end: mask (B, T) -> (B * T,)."""
    batch, length = mask.shape
    columns = torch.arange(length, device=mask.device)
    last = mask.sum(1, keepdim=True) - 1  # (B, 1)
    rows = torch.arange(batch, device=mask.device)[:, None] * length
    return (rows + torch.where(mask, last - columns, columns)).flatten()


def flip(x: Tensor, mirror: Tensor) -> Tensor:
    """Reverse each sentence's vectors (B, T, H) by the index `mirror` from `mirrored`."""
    return x.flatten(0, 1).index_select(0, mirror).view(x.shape)


@dataclass(eq=False)
class LSTMState:
    """The state of an LSTM decoder in a search with n hypotheses for each of B sentences."""

    latent: Tensor  # (B, L)
    scorer: Scorer
    hidden: Tensor  # (layers, B, n, H)
    cell: Tensor  # (layers, B, n, H)
    position: int = 0  # position of the next token, the same for all hypotheses

    def reorder(self, parents: Tensor) -> None:
        """Replace hypothesis i of each sentence by a copy of hypothesis parents[:, i]; `parents` is (B, n)."""
        layers, _, _, width = self.hidden.shape
        where = parents[None, :, :, None].expand(layers, -1, -1, width)
        self.hidden, self.cell = self.hidden.gather(2, where), self.cell.gather(2, where)

    def select(self, rows: Tensor) -> None:
        """Keep only the hypotheses of the sentences with these indices, (B',)."""
        self.latent = self.latent.index_select(0, rows)
        self.scorer.select(rows)
        self.hidden, self.cell = self.hidden.index_select(1, rows), self.cell.index_select(1, rows)


class RecurrentDecoder(nn.Module):
    """An LSTM that computes p(sentence | latent), and starts from EOS. Subclasses define the LSTM's `inputs`. By
    default, `initial_state` returns zeros, and `features` ignores the latent; subclasses may override both."""

    def __init__(self, lstm: nn.LSTM, layer: OutputLayer, dropout: float):
        super().__init__()
        self.lstm, self.layer, self.dropout = lstm, layer, Dropout(dropout)

    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from their latents (B, L)."""
        inputs = self.inputs(shift_right(target.ids), latent)
        states, _ = self.lstm(inputs, self.initial_state(latent))  # (B, T, H)
        x = states.flatten(0, 1).index_select(0, target.flat_index)  # (R, H)
        return SentencePrediction(
            role, column, self.features(x, latent, PackedLayout.of(target)), latent, self.layer, target
        )

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        """Return the input of the LSTM: previous tokens (B, T), latent (B, L) -> (B, T, input size of the LSTM)."""
        raise NotImplementedError

    def initial_state(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Return the initial hidden state and cell: (B, L) -> (layers, B, H) each."""
        lstm, dtype = self.lstm, next(self.lstm.parameters()).dtype
        zeros = torch.zeros(lstm.num_layers, len(latent), lstm.hidden_size, dtype=dtype, device=latent.device)
        return zeros, zeros

    def features(self, x: Tensor, latent: Tensor, layout: PackedLayout) -> Tensor:
        """Return the input of the output layer: states (R, H), latent (B, L) -> (R, H)."""
        return self.dropout(x)

    def start(self, latent: Tensor) -> LSTMState:
        """Return the initial state of a search, with one hypothesis for each latent (B, L)."""
        hidden, cell = self.initial_state(latent)
        return LSTMState(latent, self.layer.scorer(latent), hidden[:, :, None], cell[:, :, None])

    def step(self, tokens: Tensor, state: LSTMState) -> Tensor:
        """Score the next token of each hypothesis, given its last token: (B, n) -> (B, n, V). In the first step of a
        search, the last token is EOS."""
        count, n = tokens.shape
        latent = state.latent.repeat_interleave(n, dim=0)  # (B * n, L)
        before = state.hidden.flatten(1, 2), state.cell.flatten(1, 2)
        states, after = self.lstm(self.inputs(tokens.view(-1, 1), latent), before)
        state.hidden, state.cell = (part.view(state.hidden.shape) for part in after)
        state.position += 1
        x = self.features(states[:, 0], latent, PackedLayout.column(tokens.flatten()))
        return state.scorer(x.view(count, n, -1))


class LSTMDecoder(RecurrentDecoder):
    """An LSTM that computes p(sentence | latent z). It is as wide as token vectors (BGT paper, sec. 2 and app. A).

    `fuse` names the places where z enters:

    - "word": the input of each step is [token vector ; z].
    - "hidden": the initial hidden state is a linear map of z. Without "hidden", the initial hidden state is zero.
    - "attention": the output layer reads tanh(Linear([h ; z])), where h is the state of the LSTM. So z replaces the
      context vector of attention in eq. 5 of Luong et al. (2015). The paper itself only refers to the "traditional
      sequence-to-sequence framework".

    The output layer `layer` determines whether z also enters the logits (Logit fusion).
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
    """An LSTM that computes p(sentence | syntactic latent, semantic latent) (Chen et al. 2019).

    The latent is [syntactic ; semantic] (B, L). In each step, the LSTM reads the first `syntactic` units of the latent
    and, unless `table` is None, the previous token, as in a later decoder of the authors. The output layer reads the
    semantic latent.
    """

    def __init__(self, table: nn.Embedding | None, layer: OutputLayer, syntactic: int, width: int, dropout: float):
        inputs = syntactic + (table.embedding_dim if table else 0)
        super().__init__(LSTM(inputs, width, batch_first=True), layer, dropout)
        self.table, self.syntactic = table, syntactic

    def inputs(self, ids: Tensor, latent: Tensor) -> Tensor:
        read = latent[:, None, : self.syntactic].expand(-1, ids.shape[1], -1)
        return torch.cat([self.dropout(self.table(ids)), read], dim=-1) if self.table else read


class FirstCellDecoder(RecurrentDecoder):
    """An LSTM that computes p(sentence | z) (Deudon 2018). The initial cell is z, (B, L); z enters nowhere else. The
    initial hidden state is a trained vector.

    In training, each input token except EOS is hidden with probability `word_dropout`: a trained vector replaces it, so
    that z has to encode the token (Bowman et al. 2016). Whether a token is hidden is drawn independently for each
    token. In the released code, it is drawn once for each position, for all sentences of a batch.
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
