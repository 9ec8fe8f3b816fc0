"""Nets that several recipes use: token tables, bodies and decoders of given sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from torch import nn

from bgt_core.backend import Linear
from bgt_core.errors import UsageError, check_choice
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.layers import Transformer, make_embedding
from bgt_core.nets.lstm import BiLSTM, LSTMDecoder
from bgt_core.nets.output import OutputLayer, PlainOutput, TiedOutput, UntiedOutput

FUSIONS = {  # where the latent can enter each kind of decoder (paper, sec. 2)
    "transformer": ("word", "attention", "logit"),
    "lstm": ("word", "hidden", "attention", "logit"),
}

Table = Callable[[], nn.Embedding]


def tables(vocab_size: int, width: int, tie_embeddings: bool) -> Table:
    """Return a function that makes a new table (V, H) at each call, as in the released code; with `tie_embeddings` it
    returns one table for all nets."""
    if not tie_embeddings:
        return lambda: make_embedding(vocab_size, width)
    one = make_embedding(vocab_size, width)
    return lambda: one


def output(table: Table, vocab_size: int, width: int, latent: int, tie_embeddings: bool, logit: bool) -> OutputLayer:
    """A decoder's last layer: with `tie_embeddings` tied to the table, with `logit` fused with the latent."""
    if tie_embeddings:
        return TiedOutput(table(), latent) if logit else PlainOutput(table())
    return UntiedOutput(vocab_size, width, latent) if logit else PlainOutput.untied(vocab_size, width)


def builders(
    vocab_size: int,
    *,
    width: int,
    encoder_layers: int,
    decoder_layers: int,
    ffn_dim: int,
    heads: int,
    dropout: float,
    tie_embeddings: bool,
    fuse: Collection[str],
    word_dropout: float = 0.0,
    kind: str = "transformer",
) -> tuple[Callable[[], nn.Module], Callable[[int], nn.Module]]:
    """Return functions that make an encoder's body, and a decoder for a latent of a given width.

    `fuse` says where the latent enters the decoder. `ffn_dim`, `heads` and `word_dropout` are the Transformer's.
    UsageError for an unknown kind or fusion.
    """
    check_choice(FUSIONS, body=kind)
    if not fuse or not set(fuse) <= set(FUSIONS[kind]):
        raise UsageError(f"fuse {[*fuse]}: for {kind} choose one or more of {', '.join(FUSIONS[kind])}")
    table = tables(vocab_size, width, tie_embeddings)

    def body() -> nn.Module:
        if kind == "lstm":
            return BiLSTM(table(), encoder_layers, dropout)
        return Transformer(table(), encoder_layers, ffn_dim, heads, dropout)

    def decoder(latent: int) -> nn.Module:
        layer = output(table, vocab_size, width, latent, tie_embeddings, "logit" in fuse)
        if kind == "lstm":
            return LSTMDecoder(table(), layer, latent, decoder_layers, dropout, fuse)
        return TransformerDecoder(table(), layer, latent, decoder_layers, ffn_dim, heads, dropout, word_dropout, fuse)

    return body, decoder


def teacher_head(latent: int, units: int) -> nn.Module | None:
    """A linear map of the semantic mean to a teacher's vectors of that width; None for 0.

    It must be made last, so that all other parts get the same initial values as without it.
    """
    return Linear(latent, units, bias=False) if units else None
