"""Training on two machines, which are two network namespaces joined by a cable; needs root and `ip`.

Held: if one machine is killed, the other ends too, with an error; both resume the run, and its files are those of an
undisturbed run.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from attack import commands
from bgt_core import checkpoint

COUNT = 2
EPOCHS = "6.0"  # long enough to be killed
IN = ("ip", "netns", "exec")
ADDRESSES = ("10.231.77.1", "10.231.77.2")


class Prepared(NamedTuple):
    """The arguments of `bgt train` and of its resumption, and the files of an undisturbed run."""

    train: list[str]
    again: list[str]
    data: Path
    results: dict[str, bytes]


class Network:
    """Two namespaces that reach each other alone; a context that makes and removes them."""

    def __init__(self) -> None:
        self.names = [f"bgt-{os.getpid()}-{node}" for node in (0, 1)]
        self.cables = [f"bgt{os.getpid() % 100_000}{node}" for node in "ab"]

    def __enter__(self) -> Network:
        for name in self.names:
            ip("netns", "add", name)
        ip("link", "add", self.cables[0], "type", "veth", "peer", "name", self.cables[1])
        for name, cable, address in zip(self.names, self.cables, ADDRESSES, strict=True):
            ip("link", "set", cable, "netns", name)
            ip("-n", name, "address", "add", f"{address}/24", "dev", cable)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", cable, "up")
        return self

    def __exit__(self, *error: object) -> None:
        for name in self.names:
            ip("netns", "delete", name)  # and the cable with it

    def start(self, arguments: Sequence[str]) -> list[subprocess.Popen[bytes]]:
        """`torchrun` on both machines."""
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        machines = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", ADDRESSES[0], "--master-port", "29517"]
        return [
            subprocess.Popen(
                [*IN, name, *torchrun, *machines, "--node-rank", str(node), "-m", "bgt_core", *arguments],
                env={**os.environ, "GLOO_SOCKET_IFNAME": cable},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for node, (name, cable) in enumerate(zip(self.names, self.cables, strict=True))
        ]

    def kill(self, node: int) -> None:
        """All processes of a machine at once."""
        for process in ip("netns", "pids", self.names[node]).split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)

    def ends(self, nodes: Sequence[subprocess.Popen[bytes]]) -> list[int | None]:
        """The exit codes of both machines; None for one that is killed here because it does not end."""
        codes: list[int | None] = []
        for number, node in enumerate(nodes):
            try:
                codes.append(node.wait(timeout=commands.PATIENCE))
            except subprocess.TimeoutExpired:
                self.kill(number)
                node.wait()
                codes.append(None)
        return codes


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def prepare(data: Path, folder: Path) -> Prepared:
    command, out = commands.commands()["train"], folder / "out"
    out.mkdir(parents=True)
    train, again = ([part.format(out="{out}", data=data) for part in arguments[1:]] for arguments in command)
    train += ["--set", f"epochs={EPOCHS}"]
    with Network() as network:
        if any(network.ends(network.start([part.format(out=out) for part in train]))):
            raise RuntimeError("two undisturbed machines do not train")
    return Prepared(train, again, data, commands.results(out))


def attack(seed: int, prepared: Prepared, folder: Path) -> str:
    draw, out = random.Random(seed), folder / "out"
    out.mkdir(parents=True)
    with Network() as network:
        nodes = network.start([part.format(out=out) for part in prepared.train])
        deadline = time.monotonic() + commands.PATIENCE
        while time.monotonic() < deadline and nodes[0].poll() is None and not checkpoint.steps_of(out / "run"):
            time.sleep(0.05)
        time.sleep(draw.uniform(0, 1))
        killed = draw.choice((0, 1))
        network.kill(killed)
        codes = network.ends(nodes)
        if codes[1 - killed] is None:
            return f"machine {1 - killed} waits for {killed}, which was killed"
        if not codes[1 - killed]:
            return "the run ended before a machine was killed"
        if any(network.ends(network.start([part.format(out=out) for part in prepared.again]))):
            return "the run was not resumed"
    left = commands.results(out)
    if wrong := [file for file in prepared.results if left.get(file) != prepared.results[file]]:
        return f"{', '.join(wrong)} differ from an undisturbed run's"
    shutil.rmtree(folder)
    return ""
