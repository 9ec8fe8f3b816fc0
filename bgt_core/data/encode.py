"""Encode rows of text for a token store, on every core.

Each core has its own process, which gets chunks of rows and returns bytes. Results come in the order of the
chunks, so that a store is the same whatever the number of processes.

Pools of libraries have drawbacks: the standard library's processes import the caller's main module, which costs each of
them torch and breaks scripts without a main guard; those and joblib's outlive a killed caller, and joblib's take 16%
more processor time. These import only this module's imports, and end when the pipe to the caller does. Data passes
through it as `marshal`, which holds plain values and, unlike pickle, runs no code when it is loaded.
"""

from __future__ import annotations

import gc
import marshal
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
from bgt_core.data.numbers import no_number, number
from bgt_core.data.parallel import Bad, Row, check
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError

MAX_PROCESSES = 8  # as many as one reader can feed
COMMAND = (sys.executable, "-P", "-m", "bgt_core.data.encode")


class Encoded(NamedTuple):
    """One encoded chunk; a pair is kept if the number of tokens of every side is within the limits."""

    rows: int
    bad: list[Bad]
    short: int  # dropped pairs that are too short
    long: int
    lengths: list[bytes]  # int64 for each language: tokens of the kept pairs, EOS included
    ids: list[bytes]  # for each language: their tokens, one sentence after another
    hashes: bytes  # 8 bytes per kept row: a hash of the first column's case-folded text
    kept: bytes  # int64: the indices of the rows that stay
    labels: bytes  # float32 for the kept rows; empty without a column of labels


class RowTokenizer(NamedTuple):
    """The settings of encoding: they fully determine the result for a row."""

    tokenizer: Tokenizer
    columns: tuple[str, ...]  # all columns of the files, skipped ones too
    label: int  # index of the column of labels among those read; -1 if there is none
    min_tokens: int
    max_tokens: int
    seed: int

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the stored ids."""
        return np.dtype("uint16" if self.tokenizer.vocab_size <= 2**16 else "uint32")

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that hold text."""
        return tuple(column for number, column in enumerate(read_columns(self.columns)) if number != self.label)

    def __call__(self, rows: Sequence[Row]) -> Encoded:
        pairs, bad = check(rows, self.columns)
        sound = np.setdiff1d(np.arange(len(rows)), [index for index, *_ in bad])  # the row of each of `pairs`
        columns = list(zip(*pairs, strict=True)) or [() for _ in read_columns(self.columns)]
        labels = np.zeros(len(pairs), np.float32)
        if self.label >= 0:
            given = columns.pop(self.label)
            labels = np.array([number(text) for text in given], np.float32)
            wrong = np.flatnonzero(np.isnan(labels))
            bad = sorted([*bad, *((int(sound[i]), "no number", f"the label {no_number(given[i])}") for i in wrong)])
        sides = [self.tokenizer.encode(texts, normalised=True) for texts in columns]
        lengths = np.array([list(map(len, side)) for side in sides], np.int64)  # (columns, rows)
        labelled = ~np.isnan(labels)
        short = labelled & (lengths - 1 < self.min_tokens).any(axis=0)
        long = labelled & ~short & (lengths - 1 > self.max_tokens).any(axis=0)
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


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def encode(
    tokenizer: RowTokenizer, chunks: Iterator[tuple[int, list[Row]]], workers: int
) -> Generator[tuple[int, Encoded], None, None]:
    """Yield each (number of its source, chunk) encoded, in order, by `workers` processes, or in this process if that is
    1.

    At most two chunks per process are held at any time. A `BgtError` of `chunks` is raised after the results before it.
    Raises RuntimeError if a process dies, for example because the system runs out of memory.
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
    """Processes that run `tokenizer`, each served by its own thread and started when it has work."""

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
        """Start the process of the current thread, and send it the tokenizer."""
        environment = os.environ | {
            # so that the process can import the same modules
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",  # numpy would start one thread per core in each process
        }
        process = self._own.process = subprocess.Popen(
            COMMAND,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches only the caller, which ends the others
        )
        self._started.append(process)
        tokenizer, *rest = self._tokenizer
        assert process.stdin is not None  # a pipe
        _send(process.stdin, (tokenizer.model, *rest))

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:  # they hold no state, so killing them is safe
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._started:
            process.kill()  # started by a thread meanwhile
            process.communicate()


def _send(file: IO[bytes], value: Any) -> None:
    data = marshal.dumps(value)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def _receive(file: IO[bytes]) -> Any:
    """Read one value; raises EOFError if the other side has ended."""
    size = int.from_bytes(file.read(8), "little")
    return marshal.loads(file.read(size))


def _serve() -> None:
    """The main loop of each process, until the caller has ended."""
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    gc.disable()  # nothing here is in a cycle, and looking for cycles among the many lists takes an eighth of the time
    try:
        model, *rest = _receive(requests)
        tokenizer = RowTokenizer(Tokenizer(model), *rest)
        while True:
            _send(responses, tuple(tokenizer(_receive(requests))))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # a normal exit would flush to a pipe without a reader


if __name__ == "__main__":
    _serve()
