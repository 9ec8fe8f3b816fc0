"""Memory that the workers of one machine share: gradients are summed in place, without messages.

Every worker writes its gradients into its own row and sums one slice of all rows, the first worker's first, so that the
result does not depend on their speed.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

BLOCK = 1 << 16  # numbers of a slice summed at once: they fit a core's cache


class SharedGradients:
    """A row of float32 for each worker, visible to all."""

    def __init__(self, rows: Tensor, rank: int):
        self.rows, self.rank = rows, rank  # (workers, numbers)

    def put(self, parameters: Sequence[nn.Parameter]) -> int:
        """Move these parameters' gradients, or zeros, into this worker's row; return the count of numbers."""
        start = 0
        for parameter in parameters:
            place = self.rows[self.rank, start : start + parameter.numel()].view_as(parameter)
            if parameter.grad is None:
                place.zero_()
            else:
                place.copy_(parameter.grad)
            parameter.grad = place
            start += parameter.numel()
        return start

    def sum_slice(self, numbers: int) -> None:
        """Replace every row by the sum of all, in this worker's slice of the first `numbers`."""
        first, last = (numbers * rank // len(self.rows) for rank in (self.rank, self.rank + 1))
        for block in self.rows[:, first:last].split(BLOCK, dim=1):
            total = block[0]
            for other in block[1:]:
                total += other
            block[1:] = total


def shared_gradients(rank: int, count: int, numbers: int) -> SharedGradients | None:
    """Allocate rows of that many numbers for `count` workers, all on this machine; None if that is impossible.

    The memory has no name, so nothing stays behind, however the workers end, and the size of /dev/shm, often 64 MB,
    does not limit it. The other workers find it through the first worker's open file.
    """
    if sys.platform != "linux":
        return None
    size, place, file = 4 * count * numbers, torch.zeros(2, dtype=torch.int64), -1
    if rank == 0:
        file = os.memfd_create("gradients")
        os.ftruncate(file, size)
        place = torch.tensor([os.getpid(), file])
    dist.broadcast(place, 0)
    pid, number = place.tolist()
    memory = None
    try:
        with open(f"/proc/{pid}/fd/{number}", "r+b", buffering=0) as opened:
            memory = mmap.mmap(opened.fileno(), size)
    except OSError:  # another user's process, or a system that hides it
        pass
    missing = torch.tensor(int(memory is None))
    dist.all_reduce(missing, dist.ReduceOp.MAX)
    if rank == 0:
        os.close(file)
    if memory is None or missing:
        return None
    return SharedGradients(torch.frombuffer(memory, dtype=torch.float32).view(count, numbers), rank)
