"""Seconds of commands in processes of their own, on the wall; with `--earlier` beside those of an earlier checkout."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Measurement, interleave, page

CALL = "import sys; from {} import main; sys.argv = {!r}; main()"
WRITE = ["bgt", "generate", "--source", "You are late.", "--style", "Can you help me?"]
CODE = {  # what is started, and the seconds that it may take
    "import bgt_core": ("import bgt_core", 0.1),
    "bgt --help": (CALL.format("bgt_core.cli", ["bgt", "--help"]), 0.5),
    "bgt info": (CALL.format("bgt_core.cli", ["bgt", "info"]), 0.5),
    "bgt generate, one sentence": (CALL.format("bgt_core.cli", WRITE), 1.5),
    "bgt-probe --help": (CALL.format("probes.cli", ["bgt-probe", "--help"]), 0.5),
    "bgt-probe --list-tasks": (CALL.format("probes.cli", ["bgt-probe", "--list-tasks"]), 0.5),
}
TOLD = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "
WALL = 2  # `interleave` times more than one thread on the wall
OURS = Path(__file__).resolve().parent.parent


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Each command, beside that of an earlier checkout, or beside Python that does nothing."""
    earlier = options.earlier and options.earlier.resolve()
    for name, (code, limit) in CODE.items():
        took, other = interleave(
            lambda _, code=code: run(code, OURS),
            lambda _, code=code: run(code, earlier) if earlier else run("pass", OURS),
            WALL,
            options.rounds,
        )
        torch = {"True": "yes", "False": "no"}[run(TOLD + code, OURS).split()[-1]]
        yield Measurement(
            work=f"`{name}`, seconds",
            against=f"{limit} s",
            ratios=took,
            target=f"<= {limit}",
            ours=f"{statistics.median(took):.2f} s",
            peer=f"{earlier.name if earlier else 'Python that does nothing'}: {statistics.median(other):.2f} s",
            error=f"torch imported: {torch}",
            bottleneck=f"imports: {slowest(code)}",
        )


def run(code: str, folder: Path, *options: str) -> str:
    """What a fresh Python says on stderr while it runs `code` with the packages of a checkout."""
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr


def slowest(code: str) -> str:
    """The four packages whose own modules take longest to import."""
    spent: dict[str, int] = {}  # package -> microseconds
    for line in run(code, OURS, "-X", "importtime").splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            package = name.strip().split(".")[0]
            spent[package] = spent.get(package, 0) + int(own)
    order = sorted(spent, key=lambda package: -spent[package])[:4]
    return ", ".join(f"{package} {spent[package] / 1000:.0f} ms" for package in order)


if __name__ == "__main__":
    page(rows, __doc__)
