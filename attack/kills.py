"""`kill -9` at a random moment, once or twice, of every command that writes; then the command again.

Held: it ends well, and every file is the one that an undisturbed run leaves, and no other file is left.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

from attack import commands

COUNT = 300
CACHE = "cache/"  # its files are not results


class Prepared:
    """Each command's undisturbed results, and the seconds it takes."""

    def __init__(self, data: Path, folder: Path):
        self.data, self.seconds, self.results, self.names = data, {}, {}, {}
        self.commands = commands.commands()
        for name, command in self.commands.items():
            out, begun = folder / name.replace(" ", "-"), time.monotonic()
            end = commands.run(command.arguments, out, data)
            if end.code:
                raise RuntimeError(f"{name}: {end.errors[-500:]}")
            self.seconds[name] = time.monotonic() - begun
            self.results[name], self.names[name] = commands.results(out), commands.names(out)


def prepare(data: Path, folder: Path) -> Prepared:
    return Prepared(data, folder)


def attack(seed: int, prepared: Prepared, folder: Path) -> str:
    draw = random.Random(seed)
    name = list(prepared.commands)[seed % len(prepared.commands)]
    command, out = prepared.commands[name], folder / "out"
    out.mkdir(parents=True)
    arguments = command.arguments
    for _ in range(draw.choice((1, 1, 2))):
        process = commands.started(arguments, out, prepared.data)
        time.sleep(draw.uniform(0, 1.05 * prepared.seconds[name]))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        if command.again and (out / "run" / "run.json").exists():
            arguments = command.again
    end = commands.run(arguments, out, prepared.data)
    if end.code == 2 and "exists already" in end.errors:  # the kill came after the last byte
        end = commands.Ended(0, "")
    if end.code:
        return f"{name}: {commands.unclean(end, ())}"
    left, expected = commands.results(out), prepared.results[name]
    if wrong := [file for file in expected if left.get(file) != expected[file]]:
        return f"{name}: {', '.join(wrong)} differ from an undisturbed run's"
    if more := [file for file in commands.names(out) - prepared.names[name] if not file.startswith(CACHE)]:
        return f"{name}: {', '.join(more)} are left"
    shutil.rmtree(folder)
    return ""
