"""A run's folder, changed between a stop and its resume: bytes, lengths, names, files from elsewhere.

Held: the change is told in one line, or makes no difference to the weights that training ends in.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from attack import commands
from bgt_core import checkpoint

COUNT = 60


class Prepared:
    """A run before its last checkpoint, and the weights it ends in."""

    def __init__(self, data: Path, folder: Path):
        self.data = data
        command = commands.commands()["train"]
        self.again = command.again
        out = folder / "whole"
        end = commands.run(command.arguments, out, data)
        if end.code:
            raise RuntimeError(end.errors[-500:])
        last = checkpoint.steps_of(out / "run")[-1]
        self.last, self.weights = last.name, (last / checkpoint.WEIGHTS).read_bytes()
        shutil.rmtree(last)
        self.begun = out / "run"


def prepare(data: Path, folder: Path) -> Prepared:
    return Prepared(data, folder)


def attack(seed: int, prepared: Prepared, folder: Path) -> str:
    draw, out = random.Random(seed), folder / "out"
    shutil.copytree(prepared.begun, out / "run")
    paths = sorted(path for path in (out / "run").rglob("*") if path.is_file())
    path = draw.choice(paths)
    how = draw.choice(("flip", "cut", "zeros", "empty", "gone", "another", "longer"))
    content = bytearray(path.read_bytes())
    place = draw.randrange(len(content) or 1)
    if how == "gone":
        path.unlink()
    elif how == "another":
        shutil.copy(draw.choice(paths), folder / "other")
        shutil.move(folder / "other", path)
    else:
        changed = {
            "flip": content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
            if content
            else b"x",
            "cut": content[:place],
            "zeros": bytes(len(content)),
            "empty": b"",
            "longer": bytes(content) + draw.randbytes(draw.randrange(1, 4096)),
        }[how]
        path.write_bytes(changed)
    what = f"{path.relative_to(out)} {how}"
    end = commands.run(prepared.again, out, prepared.data)
    if wrong := commands.unclean(end, (0, 2, 3, 4)):
        return f"{what}: {wrong}"
    if end.code == 0 and (out / "run" / prepared.last / checkpoint.WEIGHTS).read_bytes() != prepared.weights:
        return f"{what}: went unnoticed, and the weights are others"
    shutil.rmtree(folder)
    return ""
