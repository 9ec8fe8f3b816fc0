"""Following a call must take few files: a profiler counts our files whose functions the call runs.

Code that runs only while a module is imported is not counted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import bgt_core
from bgt_core.training import loop
from tests.conftest import Done

EMBED, EMBEDDER, STEP, SETTING = 25, 11, 15, 5  # maximum number of files for each call

ROOT = Path(__file__).resolve().parent.parent
OURS = tuple(str(ROOT / name) + "/" for name in ("app", "bgt_core", "probes"))
SIZES = "model.d_model=16 vocab_size=400 train.epochs=1 train.batch_tokens=2000 valid_pairs=20".split()
RATE = 0.001234  # a learning rate that no other number equals


class Walk:
    """A context manager that collects our files whose functions run inside the block, if `counts(frame)` is true."""

    def __init__(self, counts: Callable[[FrameType], bool] = lambda frame: True):
        self.counts, self.importing, self.files = counts, threading.local(), set[str]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        name, depth = frame.f_code.co_filename, getattr(self.importing, "depth", 0)
        if frame.f_code.co_name == "<module>" and name.startswith(OURS):
            self.importing.depth = depth + (1 if event == "call" else -1)
        elif not depth and name.startswith(OURS) and name not in self.files and self.counts(frame):
            self.files.add(name)

    def __enter__(self) -> Walk:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def passes_at_most(self, count: int) -> None:
        names = sorted(str(Path(name).relative_to(ROOT)) for name in self.files)
        assert 1 < len(names) <= count, f"{len(names)} files, at most {count}:\n" + "\n".join(names)


def test_embedding_by_a_command(bgt: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Where is the dog?\n", "utf-8")
    with Walk() as walk:
        done = bgt("embed", tmp_path / "in.txt", "--out", tmp_path / "out.npy")
    assert done.code == 0, done.err
    walk.passes_at_most(EMBED)


def test_embedding_by_a_model_in_memory() -> None:
    model = bgt_core.load()
    with Walk() as walk:
        model.embed("Where is the dog?", lang="en")
    walk.passes_at_most(EMBEDDER)


def test_a_training_step(trains: Callable[[], Done], monkeypatch: pytest.MonkeyPatch) -> None:
    walk, step = Walk(), loop.train_step

    def counted(*arguments: Any) -> Any:
        with walk:
            return step(*arguments)

    monkeypatch.setattr(loop, "train_step", counted)
    assert trains().code == 0
    walk.passes_at_most(STEP)


def test_a_setting_reaches_the_optimiser(trains: Callable[[], Done]) -> None:
    """Count the files with a function that has the learning rate in a variable (number, text, mapping, settings)."""

    def holds(value: Any) -> bool:
        match value:
            case float():
                return value == RATE
            case str():
                return value.endswith(f"={RATE}")
            case dict():
                return any(type(each) is float and each == RATE for each in value.values())
        return getattr(value, "learning_rate", None) == RATE

    with Walk(lambda frame: any(map(holds, frame.f_locals.values()))) as walk:
        assert trains().code == 0
    walk.passes_at_most(SETTING)


@pytest.fixture
def trains(bgt: Callable[..., Done], tsv: Path, tmp_path: Path) -> Callable[[], Done]:
    """A function that runs `bgt train` on a small model for one epoch."""
    settings = [*SIZES, f"train.learning_rate={RATE}"]
    options = [part for setting in settings for part in ("--set", setting)]
    return lambda: bgt("train", "bgt-small", "--data", tsv, "--out", tmp_path / "run", "--device", "cpu", *options)
