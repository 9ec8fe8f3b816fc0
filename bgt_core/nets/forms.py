"""The operations with a fast form, and the choice of the form.

`PLAIN` is the PyTorch that a reader expects; `FAST` (`nets.fast`) gives the same numbers, to rounding, in less time and
memory. Nets call the functions of this module, which compute the fast form except within `computing(PLAIN)`. Two more
fast forms are chosen by an argument: a layout of positions (`nets.fast.packing`: without padding, or with), and
a cache of keys and values in a search (`nets.fast.kv_cache`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.nets.fast import dropout as fast_dropout
from bgt_core.nets.fast import nll as fast_nll
from bgt_core.nets.fast import softmax as fast_softmax
from bgt_core.nets.fast import tables


class Forms(NamedTuple):
    """One form of each operation; the functions below document them."""

    lookup: Callable[[nn.Embedding, Tensor], Tensor]
    softmax: Callable[[Tensor], Tensor]
    dropout: Callable[[Tensor, float], Tensor]
    nll: Callable[[Tensor, Tensor, Tensor | None, Tokens, float], tuple[Tensor, Tensor]]


def plain_lookup(table: nn.Embedding, ids: Tensor) -> Tensor:
    """See `lookup`."""
    return F.embedding(ids, table.weight, table.padding_idx)


def plain_softmax(scores: Tensor) -> Tensor:
    """See `softmax`."""
    return scores.softmax(-1)


def plain_nll(
    features: Tensor, weight: Tensor, offset: Tensor | None, target: Tokens, smoothing: float
) -> tuple[Tensor, Tensor]:
    """See `nll`."""
    row = target.flat_index // target.ids.shape[1]  # the sentence of each token, (N,)
    scores = exact(F.linear(features, weight))  # (N, V)
    if offset is not None:
        scores = scores + offset[row]
    log_p = scores.log_softmax(-1)
    gold = -log_p.gather(1, target.ids[target.mask][:, None]).squeeze(1)
    loss = ((1 - smoothing) * gold - smoothing * log_p.mean(-1)).sum()
    return loss, gold.new_zeros(len(target.ids)).index_add(0, row, gold.detach())


PLAIN = Forms(plain_lookup, plain_softmax, F.dropout, plain_nll)
FAST = Forms(tables.lookup, fast_softmax.softmax, fast_dropout.dropout, fast_nll.nll)
_forms = FAST  # no ContextVar: `torch.compile` can't read one


@contextmanager
def computing(forms: Forms) -> Iterator[None]:
    """Use these forms within the block."""
    global _forms
    before, _forms = _forms, forms
    try:
        yield
    finally:
        _forms = before


def lookup(table: nn.Embedding, ids: Tensor) -> Tensor:
    """Rows of a table: ids of any shape -> (*shape, H)."""
    return _forms.lookup(table, ids)


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension, in single precision or better."""
    return _forms.softmax(exact(scores))


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each unit with this probability, and scale the others so that the expectation stays."""
    return _forms.dropout(x, probability)


def nll(
    features: Tensor, weight: Tensor, offset: Tensor | None, target: Tokens, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy of scores = features @ weight.T + offset.

    Args:
        features: For each token, (N, H).
        weight: (V, H).
        offset: Added to the scores of a sentence's tokens, (B, V), or None.
        target: B sentences of N tokens.
        smoothing: From 0 to below 1.

    Returns:
        The scalar sum over tokens of (1 - smoothing) * NLL + smoothing * mean over V of -log p, and each sentence's
        plain NLL without gradient, (B,), both in nats.
    """
    return _forms.nll(features, weight, offset, target, smoothing)


def exact(x: Tensor) -> Tensor:
    """x in single precision or better."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
