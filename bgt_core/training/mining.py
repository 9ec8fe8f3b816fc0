"""Updates with hard negatives, found among the pairs of a mega-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, Batch
from bgt_core.data.batching import Update
from bgt_core.device import autocast
from bgt_core.training.config import TrainConfig
from bgt_core.training.negatives import mega_batch, nearest_other, with_negatives
from bgt_core.training.workers import SINGLE_PROCESS, Workers


def mined(
    updates: Iterator[Update],
    start: int,
    model: nn.Module,
    config: TrainConfig,
    device: torch.device,
    workers: Workers = SINGLE_PROCESS,
) -> Iterator[Update]:
    """The updates from step `start` on, which begins a mega-batch, each pair with a hard negative on either side.

    A mega-batch is encoded when its first update is asked for: with the weights that the updates before have led to,
    which for its own later updates are stale, as in the released codes. `updates` come whole, and every worker finds
    the same negatives among all their pairs; it yields its own share.
    """
    done = start
    while True:
        mega, vectors = [], []
        for update in islice(updates, mega_batch(done, config.mega_batch, config.mega_growth)):
            mega.append(update)  # the next is made meanwhile
            vectors += encoded(model, list(update.batches.values()), device, config.precision)
        if not mega:
            return
        left, right = vectors[0]  # the languages
        found = nearest_other(*(torch.cat([one[lang] for one in vectors]) for lang in (left, right)))
        rows = {right: found[0].row.cpu().numpy(), left: found[1].row.cpu().numpy()}  # the left find some of the right
        for number, update in enumerate(with_negatives(mega, rows, config.micro_tokens), 1):
            mine = {at: batch for at, batch in update.batches.items() if at % workers.count == workers.rank}
            update = replace(update, batches=mine, ends=number == len(mega))
            yield update if device.type == "cpu" else update.pin()
        done += len(mega)


@torch.no_grad()
def encoded(
    model: nn.Module, batches: Sequence[Batch], device: torch.device, precision: str
) -> list[dict[str, Tensor]]:
    """The semantic means of each side of each batch, (B, L), dropout off."""
    model.eval()
    with autocast(device, precision):
        found = [
            {lang: model.encoders[SEMANTIC](side.to(device)).mean.float() for lang, side in batch.sides.items()}
            for batch in batches
        ]
    model.train()
    return found
