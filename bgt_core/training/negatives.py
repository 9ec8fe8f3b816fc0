"""Hard negatives: sentences that are near to a translation and are none (Wieting et al. 2018, 2019).

They are looked for in a mega-batch: the pairs of several updates, all encoded with the same weights. It starts small,
where everything is near, and grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.backend import linear
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.batching import Update, cut

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
        block = linear(left[start : start + BLOCK], right)  # (b, S)
        block.diagonal(start).fill_(-torch.inf)
        ahead.append(block.max(1))
        cosine, row = block.max(0)
        better = cosine > back.cosine
        back = Nearest(torch.where(better, cosine, back.cosine), torch.where(better, row + start, back.row))
    return Nearest(*map(torch.cat, zip(*ahead, strict=True))), back


def with_negatives(updates: Sequence[Update], rows: Mapping[str, np.ndarray], micro_tokens: int) -> list[Update]:
    """The same updates, each pair with a wrong sentence of every language, in micro-batches cut anew.

    rows[lang] (S,) says which sentence of that language, counted over all the updates, each of their S pairs gets. A
    micro-batch has at most `micro_tokens` padded tokens on its longest side, negatives included.
    """
    batches = [batch for update in updates for batch in update.batches.values()]
    sentences = {lang: [ids for batch in batches for ids in unpadded(batch.sides[lang])] for lang in rows}
    own = {lang: np.array([len(ids) for ids in sentences[lang]]) for lang in rows}  # (S,)
    lengths = np.stack([*own.values(), *(own[lang][wrong] for lang, wrong in rows.items())], axis=1)  # (S, sides)

    def batch(pairs: np.ndarray, anchor: str) -> Batch:
        sides, wrong = (
            {lang: Tokens.pad([sentences[lang][row] for row in chosen], lang) for lang, chosen in of.items()}
            for of in (dict.fromkeys(rows, pairs), {lang: rows[lang][pairs] for lang in rows})
        )
        return Batch(sides, anchor, wrong)

    made, start = [], 0
    for update in updates:
        anchor = update.batches[0].anchor
        parts = cut(lengths[start : start + update.pairs], micro_tokens)
        made.append(replace(update, batches={number: batch(start + part, anchor) for number, part in enumerate(parts)}))
        start += update.pairs
    return made


def unpadded(side: Tokens) -> Iterator[np.ndarray]:
    """The piece ids of each sentence, (T,)."""
    for ids, length in zip(side.ids.numpy(), side.mask.sum(1).tolist(), strict=True):
        yield ids[:length]
