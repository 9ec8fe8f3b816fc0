"""Hard negatives: sentences that are near to a translation and are none (Wieting et al. 2018, 2019).

They are looked for in a mega-batch: the pairs of several updates, all encoded with the same weights. It starts small,
where everything is near, and grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Batch, Tokens
from bgt_core.products import product

BLOCK = 1_024  # rows compared with everything at once


class Nearest(NamedTuple):
    """What each of S sentences finds among the S of the other side, its own translation left out."""

    cosine: Tensor  # (S,); minus infinity where there is no other
    row: Tensor  # (S,) int64


def mega_batch(done: int, largest: int, growth: int) -> int:
    """Updates of the mega-batch that begins after `done` updates: one, and one more for every `growth` of them."""
    return min(largest, 1 + done // growth) if growth else largest


@torch.no_grad()
def nearest_other(left: Tensor, right: Tensor) -> tuple[Nearest, Nearest]:
    """Vectors of S pairs, (S, D) a side -> what the left sentences find, and what the right ones find, by cosine.

    Only its own partner is left out, as in the released codes: a copy of it counts as another sentence.
    """
    left, right = F.normalize(left.float(), dim=-1), F.normalize(right.float(), dim=-1)
    ahead, back = [], Nearest(left.new_full((len(left),), -torch.inf), torch.zeros_like(left[:, 0], dtype=torch.long))
    for start in range(0, len(left), BLOCK):
        block = product(left[start : start + BLOCK], right)  # (b, S)
        block.diagonal(start).fill_(-torch.inf)
        ahead.append(block.max(1))
        cosine, row = block.max(0)
        better = cosine > back.cosine
        back = Nearest(torch.where(better, cosine, back.cosine), torch.where(better, row + start, back.row))
    return Nearest(*map(torch.cat, zip(*ahead, strict=True))), back


def with_negatives(batches: Sequence[Batch], rows: Mapping[str, Tensor]) -> list[Batch]:
    """The same batches, each pair with a wrong sentence of every language.

    rows[lang] (S,) says which sentence of that language, counted over all the batches, belongs to each pair.
    """
    found: dict[str, list[Tokens]] = {}
    sizes = [len(batch) for batch in batches]
    for lang, chosen in rows.items():
        sentences = [
            ids[:length]
            for batch in batches
            for ids, length in zip(batch.sides[lang].ids.numpy(), batch.sides[lang].mask.sum(1).tolist(), strict=True)
        ]
        parts = chosen.cpu().split(sizes)
        found[lang] = [Tokens.pad([sentences[row] for row in part.tolist()], lang) for part in parts]
    return [
        replace(batch, negatives={lang: sides[number] for lang, sides in found.items()})
        for number, batch in enumerate(batches)
    ]
