"""One process at a time: a lock on a file, which goes with its process however that ends."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

TRIES, PAUSE = 5, 0.05  # seconds; who only looks holds a lock for less


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[bool]:
    """Whether the lock is ours until the block ends: always after waiting, else not while another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:  # closing it gives the lock back
        if wait:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield wait or taken(file)


def taken(file: IO[str]) -> bool:
    for _ in range(TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        else:
            return True
    return False
