"""Exclude tokens from the next step of a search, by its options."""

from __future__ import annotations

import torch
from torch import Tensor

from bgt_core.generation.options import Search


def allowed(scores: Tensor, written: Tensor, search: Search) -> Tensor:
    """Set scores of the next token (B, n, V) to -inf for tokens that the rules of `search` exclude, given each
    hypothesis so far, (B, n, T); returns a copy if there are rules."""
    if search.no_repeat_ngram:
        scores = without_repeated_ngrams(scores, written, search.no_repeat_ngram)
    if search.max_run:
        scores = without_long_runs(scores, written, search.max_run)
    return scores


def without_repeated_ngrams(scores: Tensor, written: Tensor, size: int) -> Tensor:
    """-inf for the last token of every earlier n-gram that starts with the last `size` - 1 tokens."""
    if written.shape[2] < size:
        return scores
    ngrams = written.unfold(2, size, 1)  # (B, n, T - size + 1, size)
    last = written[:, :, written.shape[2] - size + 1 :]
    repeated = (ngrams[..., :-1] == last[:, :, None]).all(-1)
    bars = torch.where(repeated, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce(2, ngrams[..., -1], bars, "amin")


def without_long_runs(scores: Tensor, written: Tensor, most: int) -> Tensor:
    """-inf for the last token, if it occurs `most` times in a row."""
    if written.shape[2] < most:
        return scores
    last = written[:, :, -1:]
    full = (written[:, :, -most:] == last).all(2, keepdim=True)
    bars = torch.where(full, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce(2, last, bars, "amin")
