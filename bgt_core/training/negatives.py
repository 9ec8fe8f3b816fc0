"""Hard negatives: sentences that are similar to a sentence, but are not its translation (Wieting et al. 2018, 2019).

Negatives are searched in a mega-batch: the rows of several updates, all encoded with the same weights. Mega-batches are
small at first, while all sentences are near to each other, and grow during training. If the margin loss uses negatives
of both columns, the column of the sentence itself is searched as well (Wieting et al. 2017).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.backend import autocast, linear
from bgt_core.contracts import PAD, SEMANTIC, Batch, Tokens
from bgt_core.data.batching import StepBatch, split_to_fit

if TYPE_CHECKING:
    from bgt_core.training.loop import Trainer

BLOCK = 1_024  # number of rows that are compared with all others at once

Columns = tuple[str, ...]
# For each of N sentences: its cosine with the nearest other sentence, (N,), and the index of that sentence, (N,).
Nearest = tuple[Tensor, Tensor]


def mined(updates: Iterator[StepBatch], start: int, trainer: Trainer, first: int = 0) -> Iterator[StepBatch]:
    """Add hard negatives to the updates from step `start` on; updates before step `first` get no negatives.

    The first mega-batch begins at `start`. A mega-batch is encoded when its first update is needed. So the negatives of
    its later updates were found with older weights, as in the released code of the papers. `updates` have the rows of
    all workers, so that every worker finds the same negatives; each worker yields only its own share of the rows.
    """
    config, workers, done = trainer.config, trainer.workers, max(0, start - first)

    def own_share(update: StepBatch) -> StepBatch:
        own = {at: batch for at, batch in update.batches.items() if at % workers.count == workers.rank}
        update = replace(update, batches=own)
        return update if trainer.device.type == "cpu" else update.pin()

    yield from map(own_share, islice(updates, max(0, first - start)))
    both_sides = any(part.both_sides for part in trainer.objective.counting.values())
    while True:
        mega: list[StepBatch] = []
        semantic: dict[Columns, list[dict[str, Tensor]]] = {}
        for update in islice(updates, mega_batch_size(done, config.mega_batch, config.mega_batch_warmup)):
            mega.append(update)  # meanwhile, a thread makes the next update
            for batch in update.batches.values():
                semantic.setdefault(tuple(batch.sides), []).append(semantic_means(trainer, batch))
        if not mega:
            return
        wrong = {columns: hard_negatives(columns, means, both_sides) for columns, means in semantic.items()}
        for number, update in enumerate(with_negatives(mega, wrong, config.micro_tokens), 1):
            yield own_share(replace(update, closes_mega_batch=number == len(mega)))
        done += len(mega)


def mega_batch_size(done: int, largest: int, growth: int) -> int:
    """Return a mega-batch's number of updates, after `done` updates: it grows by 1 every `growth`, up to `largest`."""
    return min(largest, 1 + done // growth) if growth else largest


@torch.no_grad()
def semantic_means(trainer: Trainer, batch: Batch) -> dict[str, Tensor]:
    """Compute the semantic means of each column, (B, L), without dropout."""
    model, device = trainer.model, trainer.device
    model.eval()
    with autocast(device, trainer.config.precision):
        means = {
            column: model.encoder(SEMANTIC, side.lang)(side.to(device)).mean.float()
            for column, side in batch.sides.items()
        }
    model.train()
    return means


def hard_negatives(
    columns: Columns, means: Sequence[Mapping[str, Tensor]], both_sides: bool = False
) -> dict[str, np.ndarray]:
    """For each column, find a hard negative for each of N rows. Return {column: indices of the negatives, (N,)}.

    For row i and column c, let s be the sentence of row i in the column before c (the last column precedes the first).
    The negative is the sentence nearest to s among the sentences of c in all other rows. With `both_sides`, the column
    of s is searched too; if the negative is found there, N is added to its index.
    """
    joined = {column: torch.cat([of_batch[column] for of_batch in means]) for column in columns}
    if len(columns) == 2:  # then one matrix product finds the negatives in both columns
        first, last = columns
        ahead, back = nearest_other(joined[first], joined[last])
        nearest = {last: ahead, first: back}
    else:
        nearest = {
            column: nearest_other(joined[columns[at - 1]], joined[column])[0] for at, column in enumerate(columns)
        }
    wrong = {}  # the order of its columns becomes their order in batches, on which random draws depend
    for column, (cosine, row) in nearest.items():
        if both_sides:
            side = joined[columns[columns.index(column) - 1]]
            own_cosine, own_row = nearest_other(side, side)[0]
            row = torch.where(own_cosine > cosine, own_row + len(row), row)
        wrong[column] = row.cpu().numpy()
    return wrong


@torch.no_grad()
def nearest_other(left: Tensor, right: Tensor) -> tuple[Nearest, Nearest]:
    """For each left sentence, find the nearest right sentence by cosine; then do the same for each right sentence.

    `left` and `right` are (N, D). Only the sentence in the same row is excluded. If another row has the same sentence,
    it counts as a different sentence, as in the released code of the papers.
    """
    left, right = F.normalize(left.float(), dim=-1), F.normalize(right.float(), dim=-1)
    forth, best = [], left.new_full((len(left),), -torch.inf)
    best_row = torch.zeros_like(best, dtype=torch.long)
    for start in range(0, len(left), BLOCK):
        block = linear(left[start : start + BLOCK], right)  # (BLOCK, N)
        block.diagonal(start).fill_(-torch.inf)
        forth.append(block.max(1))
        cosine, row = block.max(0)
        better = cosine > best
        best, best_row = torch.where(better, cosine, best), torch.where(better, row + start, best_row)
    cosines, rows = map(torch.cat, zip(*forth, strict=True))
    return (cosines, rows), (best, best_row)


def with_negatives(
    updates: Sequence[StepBatch], wrong: Mapping[Columns, Mapping[str, np.ndarray]], micro_tokens: int
) -> list[StepBatch]:
    """Return the same updates in new micro-batches, in which each row has a negative in every column.

    `wrong[columns][column]` (N,) holds the index of the negative of each row, as `hard_negatives` returns it. N counts
    the rows of all batches with these columns, over all updates. A negative may be a sentence of the previous column,
    but it is treated as text in the language of the column for which it is the negative. No column of a micro-batch,
    and no column of its negatives, has more than `micro_tokens` tokens, padding included.
    """
    candidates = {}  # names of a corpus's columns -> {column: its sentences, then those of the previous column}
    for columns in wrong:
        mega = [batch for update in updates for batch in update.batches.values() if tuple(batch.sides) == columns]
        own = {name: [ids[ids != PAD] for batch in mega for ids in batch.sides[name].ids.numpy()] for name in columns}
        candidates[columns] = {name: own[name] + own[columns[at - 1]] for at, name in enumerate(columns)}
    served, remade = dict.fromkeys(wrong, 0), []  # `served`: names of columns -> number of rows used
    for update in updates:
        batches: list[Batch] = []
        for columns in dict.fromkeys(tuple(batch.sides) for batch in update.batches.values()):
            of_columns = [batch for batch in update.batches.values() if tuple(batch.sides) == columns]
            like, rows = of_columns[0], np.arange(served[columns], served[columns] + sum(map(len, of_columns)))
            served[columns] += len(rows)
            given = {name: [candidates[columns][name][row] for row in rows] for name in wrong[columns]}
            against = {name: [candidates[columns][name][at] for at in of[rows]] for name, of in wrong[columns].items()}
            lengths = np.array([list(map(len, side)) for side in (*given.values(), *against.values())]).T
            for part in split_to_fit(lengths, micro_tokens):
                sides, negatives = (
                    {name: Tokens.pad([ids[row] for row in part], like.sides[name].lang) for name, ids in each.items()}
                    for each in (given, against)
                )
                batches.append(Batch(sides, like.anchor, like.shift, negatives))
        remade.append(replace(update, batches=dict(enumerate(batches))))
    return remade
