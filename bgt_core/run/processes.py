"""Locks, signals, and the processes of this machine that train a run together with this one.

Small operators gain little from threads, so the micro-batches of an update are spread over processes. Each helper opens
the run folder and trains as `resume` does. It writes nothing there, so it may be killed at any moment. It ends when the
pipe from this process ends, even if this one is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist

from bgt_core import checkpoint
from bgt_core.device import pick_device
from bgt_core.errors import BgtError, UsageError, check_least
from bgt_core.files import PARTIAL, file_lock, remove, writing
from bgt_core.run.plan import SETTINGS
from bgt_core.training.config import TrainConfig
from bgt_core.training.workers import Workers

COMMAND = (sys.executable, "-P", "-c", "from bgt_core.run.session import help_train; help_train()")
LOCK = "run.lock"  # exists while a process trains, or after it was killed
READY = b"ready\n"
HOST = "127.0.0.1"
SECONDS = 10.0  # time for a process whose connection is lost to end

Report = Callable[[dict[str, Any]], None]  # gets each row of metrics


def silent(row: dict[str, Any]) -> None:
    """Reports nothing."""


def usual_workers(config: TrainConfig, device: torch.device) -> int:
    """The number of processes that trains fastest: one for each thread that torch may use, at most one per micro-batch;
    one with a GPU."""
    if device.type != "cpu":
        return 1
    # Too large micro-batches are halved until they fit; a ratio of 1 needs one halving, because of padding.
    full = config.batch_tokens // (config.micro_batches * config.micro_tokens)
    return min(torch.get_num_threads(), config.micro_batches << full.bit_length())


def check_workers(count: int | None, device: str, launched: Workers) -> None:
    """Raise UsageError for an impossible number of workers; NotFound for a missing device."""
    kind = pick_device(device).type
    check_least(1, workers=count)
    if launched.count > 1 and count not in (None, 1, launched.count):
        raise UsageError(f"{count}: torchrun has started {launched.count} already; leave it out.", parameter="workers")
    if kind != "cpu" and count not in (None, 1):
        raise UsageError(f"{count} would share the cores of a CPU; on several GPUs use torchrun.", parameter="workers")


@contextmanager
def helped(out: Path, count: int) -> Iterator[Workers]:
    """The group of this process, which is its first worker, and `count` - 1 helpers; threads are divided among them."""
    threads = torch.get_num_threads()
    each = max(1, threads // count)
    store = dist.TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    helpers: list[Helper] = []
    with ExitStack() as stack:
        for rank in range(1, count):
            errors = stack.enter_context(tempfile.TemporaryFile())
            helpers.append(Helper(rank, count, each, store.port, out, errors))
            stack.callback(helpers[-1].end)
        stack.callback(torch.set_num_threads, threads)
        torch.set_num_threads(each)
        for helper in helpers:
            helper.wait_until_ready()
        with Workers(0, count, local=True, store=store) as workers:
            try:
                yield workers
            except RuntimeError as error:  # raised by torch if a connection is lost
                if why := reason(helpers, out):
                    raise why from error
                raise


class Helper:
    """Worker `rank` of `count`, in its own process, which writes errors to the file `errors`."""

    def __init__(self, rank: int, count: int, threads: int, port: int, out: Path, errors: IO[bytes]):
        self.name, self.errors = f"worker {rank} of {count}", errors
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, (rank, count, threads, port, out))],
            # so that it can import the same modules
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C reaches this process only, which tells the others
        )

    def wait_until_ready(self) -> None:
        """Wait until it has imported everything; BgtError if it ends instead."""
        assert self.process.stdout is not None  # a pipe
        if self.process.stdout.readline() != READY:
            self.process.wait()
            raise self.reason()

    def reason(self) -> BgtError:
        """Describe how it ended, with its error."""
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        self.errors.seek(0)
        return BgtError(f"{self.name} {how}. {self.errors.read().decode(errors='replace')}".strip())

    def end(self) -> None:
        """Kill it, which is safe because it holds no state."""
        self.process.kill()
        self.process.communicate()


def reason(helpers: Sequence[Helper], out: Path) -> BgtError | None:
    """Explain why this process lost another: the one that ended first. None if all are alive, so that the fault is
    here."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if ended := [helper for helper in helpers if helper.process.poll() is not None]:
            # a signal comes before the errors that it causes
            first = min(ended, key=lambda helper: helper.process.returncode)
            return BgtError(f"{first.reason()} Continue with: bgt train --resume --out {out}")
        time.sleep(0.005)
    return None


def end_with_caller() -> None:
    """End this process when the pipe from the caller ends."""
    os.read(0, 1)
    os._exit(1)


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Lock `out`, made if necessary, against other training processes until the block or this process ends.

    Leftovers of a killed preparation are removed, and a new folder that stays empty. UsageError if another process
    trains there.
    """
    lock, made = out / LOCK, not out.exists()
    with ExitStack() as held:
        with writing(out, "; name another folder"):
            out.mkdir(parents=True, exist_ok=True)
            left = lock.exists()  # only a killed process leaves one
            if not held.enter_context(file_lock(lock)):
                raise UsageError(f"{out}: another process trains here; wait for it, or choose another folder.")
            held.callback(release, lock, made)
            if left and not (out / SETTINGS).exists():
                for path in (out / "data", out / checkpoint.TOKENIZER, *out.glob(f"*{PARTIAL}")):
                    remove(path)
        yield


def release(lock: Path, made: bool) -> None:
    """Remove a lock, and the folder `made` for it if that is otherwise empty."""
    with suppress(OSError):
        lock.unlink()
        if made:
            lock.parent.rmdir()


class Signals:
    """SIGTERM and SIGINT end the run after the step in progress; a second SIGINT ends it at once."""

    def __init__(self) -> None:
        self.seen = False

    def came(self) -> bool:
        """Whether a signal has come."""
        return self.seen

    def _note(self, number: int, frame: object) -> None:
        if self.seen and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.seen = True

    def __enter__(self) -> Signals:
        self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
