"""A full disk, and one that can't be written, under every command that writes.

Where this user may mount, a tmpfs of a few kilobytes to a megabyte, or one that is read-only; elsewhere a limit on the
size of files, which says "file too large" in the place of "no space left". Held: one line, and a foreseeable exit code.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
from pathlib import Path

from attack import commands

COUNT = 120


def prepare(data: Path, folder: Path) -> Path:
    return data


def attack(seed: int, data: Path, folder: Path) -> str:
    draw, out = random.Random(seed), folder / "out"
    out.mkdir(parents=True)
    name, command = draw.choice(list(commands.commands().items()))
    size, read_only = draw.choice((4, 16, 64, 256, 1024)), draw.random() < 0.3
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k{',ro' if read_only else ''}", "tmpfs", str(out)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def limited() -> None:
        if not mounted:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * size, 1024 * size))

    try:
        end = commands.run(command.arguments, out, data, limited)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(out)], check=True)
    if wrong := commands.unclean(end, (0, 2, 3, 5)):
        return f"{name}, {size} kB{', read-only' if read_only else ''}: {wrong}"
    return ""
