"""Processes that meet: two commands that write the same files, and workers of `torchrun` of which one is killed.

Held: one of the two says that the other is there, or both leave what one would; a run whose worker was killed goes on
to its end by one process alone.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from attack import commands
from attack.kills import Prepared
from bgt_core import checkpoint

COUNT = 80
WORKERS = 4  # tries of COUNT: each starts torch, which takes half a minute
EPOCHS = "20.0"  # long enough to be killed


def prepare(data: Path, folder: Path) -> Prepared:
    return Prepared(data, folder)


def attack(seed: int, prepared: Prepared, folder: Path) -> str:
    draw, out = random.Random(seed), folder / "out"
    out.mkdir(parents=True)
    if seed % (COUNT // WORKERS) == 0:
        return killed_worker(draw, prepared, out)
    name = draw.choice(list(prepared.commands))
    command = prepared.commands[name]
    first = commands.started(command.arguments, out, prepared.data)
    time.sleep(draw.uniform(0, prepared.seconds[name]))
    second = commands.started(command.arguments, out, prepared.data)
    ends = [commands.ended(process, out) for process in (first, second)]
    for end in ends:
        if wrong := commands.unclean(end, (0, 2, 3)):
            return f"two of {name}: {wrong}"
    if 0 not in {end.code for end in ends}:
        return f"two of {name}: neither ended well: {ends[0].errors[-200:]}"
    left, expected = commands.results(out), prepared.results[name]
    others = [file for file in expected if left.get(file) != expected[file]]
    shutil.rmtree(folder)
    return f"two of {name}: {', '.join(others)} differ from an undisturbed run's" if others else ""


def killed_worker(draw: random.Random, prepared: Prepared, out: Path) -> str:
    """Two workers of torchrun, one of them killed; then a resume by one process."""
    command = prepared.commands["train"]
    arguments = [part.format(out=out, data=prepared.data) for part in command.arguments[1:]]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "bgt_core", *arguments]
    longer = ["--set", f"epochs={EPOCHS}"]  # long enough to be killed
    with subprocess.Popen(
        [*torchrun, *longer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as both:
        deadline = time.monotonic() + commands.PATIENCE
        while time.monotonic() < deadline and both.poll() is None and not checkpoint.steps_of(out / "run"):
            time.sleep(0.05)
        time.sleep(draw.uniform(0, 2))
        workers = Path(f"/proc/{both.pid}/task/{both.pid}/children").read_text("utf-8").split()
        os.kill(int(draw.choice(workers)), signal.SIGKILL)
        try:
            both.wait(timeout=commands.PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(both.pid, signal.SIGKILL)
            return "the other worker hangs"
    before = checkpoint.steps_of(out / "run")
    end = commands.run(command.again, out, prepared.data)
    if end.code:
        return f"after a worker was killed: {commands.unclean(end, ())}"
    if not before or checkpoint.steps_of(out / "run")[-1] == before[-1]:
        return "nothing was left to go on with"
    shutil.rmtree(out.parent)
    return ""
