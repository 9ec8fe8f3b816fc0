"""The processes that share one run.

Every worker holds the whole model. An update's micro-batches are dealt out; gradients are summed before the
optimiser steps, so all workers stay equal. Random draws depend on the micro-batch's number, not on the worker that
computes it: the number of workers only changes the order of sums.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from importlib import import_module
from types import TracebackType

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bgt_core.contracts import Model

PATIENCE = timedelta(hours=24)  # while the first worker prepares the data
HERE = "LOCAL_WORLD_SIZE"


@dataclass(eq=False)
class Workers:
    """This process among `count`; a context that connects and disconnects them."""

    rank: int = 0
    count: int = 1
    local: bool = False  # all on this machine
    store: dist.Store | None = None  # for the rendezvous; None: set by `torchrun`
    shared: SharedGradients | None = field(default=None, init=False)  # from the first sum on

    @classmethod
    def from_environment(cls) -> Workers:
        """Read the settings of `torchrun` from the environment."""
        rank, count, here = (int(os.environ.get(name, n)) for name, n in [("RANK", 0), ("WORLD_SIZE", 1), (HERE, 0)])
        return cls(rank, count, local=here == count)

    def __enter__(self) -> Workers:
        if self.count == 1:
            return self
        # torch.distributed.nn captures the default group when it is imported. Imported before there is one, it can't
        # keep the group's threads alive past destroy_process_group, which sometimes aborted the interpreter.
        import_module("torch.distributed.nn")
        if self.store is not None:
            dist.init_process_group("gloo", store=self.store, rank=self.rank, world_size=self.count, timeout=PATIENCE)
        elif torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.init_process_group("cpu:gloo,cuda:nccl", timeout=PATIENCE)
        else:
            dist.init_process_group("gloo", timeout=PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.count > 1:
            dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        """Whether this worker writes files and reports."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all workers are here."""
        self.any(False)

    def any(self, *flags: bool) -> list[bool]:
        """Each flag, true if any worker raises it; sent through the CPU, so that no GPU is waited for."""
        if self.count == 1:
            return list(flags)
        return [bool(flag) for flag in self._all(torch.tensor(flags, dtype=torch.int32), dist.ReduceOp.MAX)]

    def sum_over_ranks(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The sum of each named tensor over the workers that have it, in float64 on the CPU."""
        parts = [{name: value.tolist() for name, value in values.items()}]
        if self.count > 1:
            text = torch.frombuffer(bytearray(json.dumps(parts[0]).encode()), dtype=torch.uint8)
            (longest,) = self._all(torch.tensor([len(text)]), dist.ReduceOp.MAX).tolist()
            texts = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.count)]
            dist.all_gather(texts, torch.cat([text, text.new_full((longest - len(text),), ord(" "))]))
            parts = [json.loads(bytes(text.tolist())) for text in texts]
        names = dict.fromkeys(name for part in parts for name in part)
        return {
            name: reduce(torch.add, [torch.tensor(part[name], dtype=torch.float64) for part in parts if name in part])
            for name in names
        }

    def gather(self, rows: Tensor) -> Tensor:
        """Concatenate the rows of all workers, the first one's first, on the CPU; shapes may differ in the number of
        rows.

        A worker without rows may pass any empty tensor with as many dimensions.
        """
        rows = rows.detach().cpu()
        if self.count == 1:
            return rows
        shapes = [torch.zeros(rows.ndim, dtype=torch.int64) for _ in range(self.count)]
        dist.all_gather(shapes, torch.tensor(rows.shape))
        padded = rows.new_zeros(torch.stack(shapes).amax(0).tolist())
        padded[tuple(map(slice, rows.shape))] = rows
        parts = [torch.empty_like(padded) for _ in range(self.count)]
        dist.all_gather(parts, padded)
        return torch.cat([part[: shape[0]] for part, shape in zip(parts, shapes, strict=True)])

    def sum_gradients(self, model: Model) -> None:
        """Replace each gradient by its sum over the workers; gradients that are absent on all workers stay None."""
        if self.count == 1:
            return
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        present = self.any(*(parameter.grad is not None for parameter in wanted))
        wanted = [parameter for parameter, exists in zip(wanted, present, strict=True) if exists]
        if self.local and self.shared is None and all(parameter.device.type == "cpu" for parameter in wanted):
            numbers = sum(parameter.numel() for parameter in model.parameters())
            self.shared = shared_gradients(self.rank, self.count, numbers)
            self.local = self.shared is not None
        if self.shared:
            numbers = self.shared.put(wanted)
            self.wait()
            self.shared.sum_slice(numbers)
            self.wait()
            return
        for parameter in wanted:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for sent in [dist.all_reduce(parameter.grad, async_op=True) for parameter in wanted]:
            sent.wait()

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a tensor of one shape over the workers."""
        return values if self.count == 1 else self._all(values.clone(), dist.ReduceOp.SUM)

    @staticmethod
    def _all(value: Tensor, how: dist.ReduceOp.RedOpType) -> Tensor:
        dist.all_reduce(value, how)
        return value


SINGLE_PROCESS = Workers()  # one process, as without `torchrun`


# Memory that the workers of one machine share: gradients are summed in place, without messages.

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
