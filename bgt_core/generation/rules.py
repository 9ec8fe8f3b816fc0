"""Tokens that a search may not write next, as its options say."""

from __future__ import annotations

import torch
from torch import Tensor

from bgt_core.generation.options import Search


def allowed(scores: Tensor, written: Tensor, search: Search) -> Tensor:
    """Scores of the next token (B, n, V) -> the same with -inf where the rules of `search` leave a token out, given
    what each hypothesis holds, (B, n, T); a copy, if there are rules."""
    if search.no_repeat_ngram:
        scores = without_repeated_ngrams(scores, written, search.no_repeat_ngram)
    if search.max_run:
        scores = without_long_runs(scores, written, search.max_run)
    return scores


def without_repeated_ngrams(scores: Tensor, written: Tensor, size: int) -> Tensor:
    """-inf for the last token of every earlier n-gram that starts with the `size` - 1 tokens written last."""
    if written.shape[2] < size:
        return scores
    ngrams = written.unfold(2, size, 1)  # (B, n, T - size + 1, size)
    last = written[:, :, written.shape[2] - size + 1 :]
    repeated = (ngrams[..., :-1] == last[:, :, None]).all(-1)
    bars = torch.where(repeated, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce(2, ngrams[..., -1], bars, "amin")


def without_long_runs(scores: Tensor, written: Tensor, most: int) -> Tensor:
    """-inf for the token written last, where it stands `most` times in a row."""
    if written.shape[2] < most:
        return scores
    last = written[:, :, -1:]
    full = (written[:, :, -most:] == last).all(2, keepdim=True)
    bars = torch.where(full, -torch.inf, torch.inf).to(scores.dtype)
    return scores.scatter_reduce(2, last, bars, "amin")
