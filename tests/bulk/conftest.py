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
    """states(folder, work): does the work, and returns copies of the folder: as a kill would leave it before and after
    each file takes its name."""

    def call(folder: Path, work: Callable[[], object]) -> list[Path]:
        copies: list[Path] = []

        def replace(old: Path, new: Path, real: Callable[[Path, Path], None] = os.replace) -> None:
            copies.append(Path(shutil.copytree(folder, f"state-{len(copies)}")))
            real(old, new)
            copies.append(Path(shutil.copytree(folder, f"state-{len(copies)}")))

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", replace)
            work()
        return copies

    return call
