"""Work that is stopped: after some rows, or at any moment that matters to what is on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Stop(BaseException):
    """Ends the work from inside."""


@pytest.fixture
def names() -> Callable[[], list[str]]:
    """names(): of the files in the working folder."""
    return lambda: sorted(path.name for path in Path().iterdir())


@pytest.fixture
def begin() -> Callable[..., None]:
    """begin(rows, work, *arguments, **options): the work, stopped once that many rows are done."""

    def call(rows: int, work: Callable[..., object], *arguments: Any, **options: Any) -> None:
        def report(done: int, total: int) -> None:
            if done >= rows:
                raise Stop

        with pytest.raises(Stop):
            work(*arguments, **options, report=report)

    return call


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path]]:
    """states(out, work): does the work, which writes the file `out`, and returns copies of its folder.

    They are made around each call that settles something on disk: as a kill would leave the folder, and as a power cut
    may leave it, of `out` only what was synced. Nothing is synced any more afterwards.
    """

    def call(out: Path, work: Callable[[], object]) -> list[Path]:
        copies, synced, partial = [], b"", f"{out.name}.partial"

        def copy() -> None:
            for rows_lost in (False, True):
                copies.append(Path(shutil.copytree(out.parent, f"state-{len(copies)}")))
                if rows_lost and (copies[-1] / partial).exists():
                    (copies[-1] / partial).write_bytes(synced)

        def fsync(file: int) -> None:
            nonlocal synced
            copy()
            path = out.with_name(partial)
            synced = path.read_bytes() if os.path.samestat(os.fstat(file), path.stat()) else synced
            copy()

        def replace(old: Path, new: Path, real: Callable[[Path, Path], None] = os.replace) -> None:
            copy()
            real(old, new)
            copy()

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            patched.setattr(os, "replace", replace)
            work()
        monkeypatch.setattr(os, "fsync", lambda file: None)
        return copies

    return call
