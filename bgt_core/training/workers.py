"""Train one model in several processes, the workers. Either `torchrun` or, on this machine, `joined` starts them.

Every worker has a copy of the whole model, and computes some of the micro-batches of each update. The gradients of all
workers are summed before the optimiser's step, so the copies stay equal. Random draws depend on the index of the
micro-batch, not on the worker. So the number of workers only changes the order of the sums and their rounding.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from importlib import import_module
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, start_processes

from bgt_core.backend import pick_device
from bgt_core.contracts import Model
from bgt_core.errors import BgtError, UsageError, check_least
from bgt_core.recipes.recipe import TrainConfig

PATIENCE = timedelta(hours=24)  # how long the other workers wait while the first worker sets up the run
SECONDS = 10.0  # seconds to wait for the end of a process whose connection is lost
HOST = "127.0.0.1"
Value = TypeVar("Value")


@dataclass(eq=False)
class Workers:
    """One of `count` worker processes, with the index `rank`. Entering the context connects all workers."""

    rank: int = 0
    count: int = 1
    store: dist.Store | None = None  # through which workers find each other; None if `torchrun` started them

    @classmethod
    def from_environment(cls) -> Workers:
        """Return this process as a worker, with the rank and count that `torchrun` has set, or as the only worker."""
        return cls(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))

    def __enter__(self) -> Workers:
        if self.count == 1:
            return self
        # If a process group exists when torch.distributed.nn is imported, the module keeps the group and its threads.
        # After destroy_process_group, these threads sometimes aborted the interpreter. So it is imported early.
        import_module("torch.distributed.nn")
        if self.store is not None:
            dist.init_process_group("gloo", store=self.store, rank=self.rank, world_size=self.count, timeout=PATIENCE)
        elif torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.init_process_group("cpu:gloo,cuda:nccl", timeout=PATIENCE)
        else:
            dist.init_process_group("gloo", timeout=PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        if self.count > 1:
            dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        """Whether this worker writes files and reports."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all workers have called this method."""
        self.any(False)

    def any(self, *flags: bool) -> list[bool]:
        """Return for each flag whether it is true in any worker. Flags stay on the CPU: no worker waits for a GPU."""
        raised = torch.tensor(flags, dtype=torch.int32)
        if self.count > 1:
            dist.all_reduce(raised, dist.ReduceOp.MAX)
        return [bool(flag) for flag in raised]

    def every(self, value: Value) -> list[Value]:
        """Return the values of all workers, ordered by rank; tensors must be on the CPU."""
        values = [value] * self.count
        if self.count > 1:
            dist.all_gather_object(values, value)
        return values

    def sum_over_ranks(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Sum each named tensor over the workers that have it, in float64 on the CPU."""
        parts = self.every({name: value.detach().cpu().double() for name, value in values.items()})
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: reduce(torch.add, [part[name] for part in parts if name in part]) for name in names}

    def gather(self, rows: Tensor) -> Tensor:
        """Concatenate the rows of all workers on the CPU, ordered by rank. A worker may pass an empty tensor."""
        parts = [part for part in self.every(rows.detach().cpu()) if len(part)]
        return torch.cat(parts) if parts else rows.detach().cpu()

    def sum_gradients(self, model: Model) -> None:
        """Replace each gradient by its sum over the workers; a gradient that is None in all workers stays None."""
        if self.count == 1:
            return
        wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
        present = self.any(*(parameter.grad is not None for parameter in wanted))
        wanted = [parameter for parameter, exists in zip(wanted, present, strict=True) if exists]
        # All gradients are sent in one message, which is faster, because separate messages would wait for each other.
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in wanted]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for parameter, total in zip(wanted, flat.split([each.numel() for each in wanted]), strict=True):
            parameter.grad = total.view_as(parameter)

    def sum(self, values: Tensor) -> Tensor:
        """Sum a tensor over the workers; it must have the same shape in all of them."""
        if self.count == 1:
            return values
        dist.all_reduce(total := values.clone())
        return total


def usual_workers(config: TrainConfig, device: torch.device) -> int:
    """Return the number of workers that trains fastest: 1 on a GPU; on a CPU, the number of torch's threads, but at
    most one worker per micro-batch. Several processes are faster than one with several threads."""
    if device.type != "cpu":
        return 1
    # A micro-batch with more than `micro_tokens` tokens is halved until it fits. A micro-batch with exactly as many
    # tokens is also halved, because padding is added to them.
    full = config.batch_tokens // (config.micro_batches * config.micro_tokens)
    return min(torch.get_num_threads(), config.micro_batches << full.bit_length())


def check_workers(worker_count: int | None, device: str, launched: Workers) -> None:
    """Raise UsageError for an impossible number of workers, and NotFound for a missing device."""
    kind = pick_device(device).type
    check_least(1, workers=worker_count)
    if launched.count > 1 and worker_count not in (None, 1, launched.count):
        text = f"{worker_count}: torchrun has already started {launched.count} workers; leave this option out."
        raise UsageError(text, parameter="workers")
    if kind != "cpu" and worker_count not in (None, 1):
        text = f"{worker_count}: must be 1 on a GPU, because workers share the cores of a CPU; use torchrun instead."
        raise UsageError(text, parameter="workers")


@contextmanager
def joined(count: int, work: Callable[..., object], *arguments: Any) -> Iterator[Workers]:
    """Start `count` - 1 processes that call work(workers, *arguments); this process joins them as the first worker.

    Torch's threads are divided among all workers. The new processes write no files, so they are killed when the block
    ends. If this process is killed, they lose their connection and end. As always with torch.multiprocessing, a script
    that uses this needs `if __name__ == "__main__"`. If a worker ends early, raises BgtError with the reason.
    """
    threads = torch.get_num_threads()
    store = dist.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    shared = count, max(1, threads // count), store.port, work, arguments
    context = start_processes(_work, shared, count - 1, join=False, daemon=True, start_method="spawn")
    torch.set_num_threads(shared[1])
    try:
        # This loop notices at once if a process ends before it connects. Otherwise, we would wait for `PATIENCE`.
        while not store.check([f"worker {number}" for number in range(1, count)]):
            context.join(0.1)
        try:
            with Workers(0, count, store) as workers:
                yield workers
        except RuntimeError:  # join() raises the error of the worker that ended
            context.join(SECONDS)
            raise
    except ProcessExitedException as ended:
        code = ended.exit_code
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise BgtError(f"worker {ended.error_index + 1} of {count} {how}.") from ended
    except ProcessRaisedException as ended:
        last = ended.msg.strip().splitlines()[-1]
        raise BgtError(f"worker {ended.error_index + 1} of {count} failed: {last}.") from ended
    finally:
        torch.set_num_threads(threads)
        for process in context.processes:
            process.kill()
            process.join()


def _work(number: int, count: int, threads: int, port: int, work: Callable[..., object], arguments: Any) -> None:
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C also reaches the first worker, which ends this worker
    store = dist.TCPStore(HOST, port, is_master=False)
    store.set(f"worker {number + 1}", "")
    with Workers(number + 1, count, store) as workers:
        try:
            work(workers, *arguments)
        except BgtError as error:  # the first worker reports the same error
            sys.exit(error.exit_code)
