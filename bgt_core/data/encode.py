"""Rows of text to what a token store holds of them, on every core.

Each core has a process of its own, which gets chunks of rows and gives back bytes. Results come in the order of the
chunks, so that a store is the same whatever the number of processes.

Why not a pool of a library: the standard library's processes import the caller's main module, which costs each of
them torch and breaks scripts without a main guard; those and joblib's outlive a caller that is killed, and joblib's
take 16% more processor time. These import what is named here, and end when the pipe to the caller does. What goes
through it is `marshal`, which holds plain values and, unlike pickle, runs nothing when it is loaded.
"""

from __future__ import annotations

import gc
import marshal
import math
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np

from bgt_core.data.columns import read_columns
from bgt_core.data.filters import hashes
from bgt_core.data.parallel import Bad, Row, check
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError

MAX_PROCESSES = 8  # as many as one reader keeps busy
NO_NUMBER = "the label is no number; expected 0, 1, 2, ... for classes"
COMMAND = (sys.executable, "-P", "-m", "bgt_core.data.encode")


class Encoded(NamedTuple):
    """One chunk of rows; a pair stays where the number of pieces of every side is within the limits."""

    rows: int
    bad: list[Bad]
    short: int  # pairs that are left out
    long: int
    lengths: list[bytes]  # int64 of each language: pieces of the pairs that stay, EOS included
    ids: list[bytes]  # of each language: their pieces, one sentence after another
    hashes: bytes  # 8 bytes a row that stays: of the first column's case-folded text
    kept: bytes  # int64: the indices of the rows that stay
    labels: bytes  # float32 of the rows that stay; empty without a column of labels


class RowTokenizer(NamedTuple):
    """Rows to piece ids: all that decides what becomes of a row."""

    tokenizer: Tokenizer
    columns: tuple[str, ...]  # of the files, those too that are not read
    label: int  # which of the columns that are read holds labels; -1: none
    min_pieces: int
    max_pieces: int
    seed: int

    @property
    def dtype(self) -> np.dtype:
        """Of the stored ids."""
        return np.dtype("uint16" if self.tokenizer.vocab_size <= 2**16 else "uint32")

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that hold text."""
        return tuple(column for number, column in enumerate(read_columns(self.columns)) if number != self.label)

    def __call__(self, rows: Sequence[Row]) -> Encoded:
        pairs, bad = check(rows, self.columns)
        sound = np.setdiff1d(np.arange(len(rows)), [index for index, *_ in bad])  # where each of `pairs` stood
        columns = list(zip(*pairs, strict=True)) or [() for _ in read_columns(self.columns)]
        labels = np.zeros(len(pairs), np.float32)
        if self.label >= 0:
            labels = np.array([number(text) for text in columns.pop(self.label)], np.float32)
            bad = sorted([*bad, *((int(sound[i]), "no number", NO_NUMBER) for i in np.flatnonzero(np.isnan(labels)))])
        sides = [self.tokenizer.encode(texts, normalised=True) for texts in columns]
        lengths = np.array([list(map(len, side)) for side in sides], np.int64)  # (columns, rows)
        labelled = ~np.isnan(labels)
        short = labelled & (lengths - 1 < self.min_pieces).any(axis=0)
        long = labelled & ~short & (lengths - 1 > self.max_pieces).any(axis=0)
        stays = np.flatnonzero(labelled & ~short & ~long)
        kept = stays.tolist()
        return Encoded(
            rows=len(rows),
            bad=bad,
            short=int(short.sum()),
            long=int(long.sum()),
            lengths=[of_side[kept].tobytes() for of_side in lengths],
            ids=[np.fromiter(chain.from_iterable(side[i] for i in kept), self.dtype).tobytes() for side in sides],
            hashes=hashes([columns[0][i].casefold() for i in kept], self.seed).tobytes(),
            kept=sound[stays].astype(np.int64).tobytes(),
            labels=labels[stays].tobytes() if self.label >= 0 else b"",
        )


def number(text: str) -> float:
    """The finite number that a label says; NaN for anything else."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def encode(
    tokenizer: RowTokenizer, chunks: Iterator[tuple[int, list[Row]]], workers: int
) -> Generator[tuple[int, Encoded], None, None]:
    """Each (number of its source, chunk) encoded, in order, by `workers` processes, or in this one where that is 1.

    At most two chunks a process are held at any time. A `BgtError` of `chunks` comes after the results before it.
    Raises RuntimeError where a process dies, as it does where the system runs out of memory.
    """
    if workers == 1:
        yield from ((source, tokenizer(rows)) for source, rows in chunks)
        return
    waiting: deque[tuple[int, Future[Encoded]]] = deque()
    failed = None
    with _Processes(tokenizer, workers) as processes:
        try:
            for source, rows in chunks:
                waiting.append((source, processes.submit(rows)))
                if len(waiting) == 2 * workers:
                    first, result = waiting.popleft()
                    yield first, result.result()
        except BgtError as error:
            failed = error
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
    if failed:
        raise failed


class _Processes:
    """Processes that run `tokenizer`, each served by a thread of its own and started when there is work for it."""

    def __init__(self, tokenizer: RowTokenizer, count: int):
        self._tokenizer = tokenizer
        self._threads = ThreadPoolExecutor(count)
        self._own = threading.local()
        self._started: list[subprocess.Popen[bytes]] = []

    def submit(self, rows: list[Row]) -> Future[Encoded]:
        return self._threads.submit(self._run, rows)

    def _run(self, rows: list[Row]) -> Encoded:
        try:
            if not hasattr(self._own, "process"):
                self._start()
            _send(self._own.process.stdin, rows)
            return Encoded(*_receive(self._own.process.stdout))
        except (BrokenPipeError, EOFError) as error:
            code = self._own.process.wait()
            raise RuntimeError(f"a process that encodes text ended with exit code {code}") from error

    def _start(self) -> None:
        """Gives the current thread its process, and that its tokenizer."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),  # what can be imported here can be there
            "OPENBLAS_NUM_THREADS": "1",  # numpy would start one thread a core in each process
        }
        process = self._own.process = subprocess.Popen(
            COMMAND,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches the caller only, which ends the others
        )
        self._started.append(process)
        tokenizer, *rest = self._tokenizer
        assert process.stdin is not None  # a pipe
        _send(process.stdin, (tokenizer.model, *rest))

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:  # they keep nothing, so they need no goodbye
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.kill()  # one that a thread has started meanwhile
            process.communicate()


def _send(file: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def _receive(file: IO[bytes]) -> Any:
    """Raises EOFError where the other side has ended."""
    size = int.from_bytes(file.read(8), "little")
    return marshal.loads(file.read(size))


def _serve() -> None:
    """What each process does, until the caller has ended."""
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    gc.disable()  # nothing here is in a cycle, and looking for cycles among the many lists takes an eighth of the time
    try:
        model, *rest = _receive(requests)
        tokenizer = RowTokenizer(Tokenizer(model), *rest)
        while True:
            _send(responses, tuple(tokenizer(_receive(requests))))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # a normal end would flush to a pipe that nobody reads


if __name__ == "__main__":
    _serve()
