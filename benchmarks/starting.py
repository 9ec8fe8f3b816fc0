"""How long the commands take to say what they do, in processes of their own, on the wall."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Measurement, interleave, page

COMMANDS = {"bgt": "bgt_core.cli", "bgt-probe": "probes.cli"}
HELP = "import sys; from {} import main; sys.argv = ['{}', '--help']; main()"
TOLD = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "
WALL = 2  # `interleave` times more than one thread on the wall
LIMIT = 0.5  # seconds


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """`--help` of each command."""
    for name, module in COMMANDS.items():
        code = HELP.format(module, name)
        took, bare = interleave(lambda _, code=code: run(code), lambda _: run("pass"), WALL, options.rounds)
        torch = {"True": "yes", "False": "no"}[run(TOLD + code).split()[-1]]
        yield Measurement(
            work=f"`{name} --help`, seconds",
            against=f"{LIMIT} s",
            ratios=took,
            target=f"<= {LIMIT}",
            ours=f"{statistics.median(took):.2f} s",
            peer=f"Python that does nothing: {statistics.median(bare):.2f} s",
            error=f"torch imported: {torch}",
            floor=f"Python alone, {statistics.median(bare):.2f} s",
            reached=statistics.median(bare) / statistics.median(took),
            bottleneck=f"imports: {slowest(code)}",
        )


def run(code: str, *options: str) -> str:
    """What a fresh Python says on stderr while it runs `code`."""
    done = subprocess.run([sys.executable, *options, "-c", code], check=True, capture_output=True, text=True)
    return done.stderr


def slowest(code: str, most: int = 4) -> str:
    """The packages whose own modules take longest to import."""
    spent: dict[str, int] = {}  # package -> microseconds
    for line in run(code, "-X", "importtime").splitlines():
        own, _, name = line.removeprefix("import time:").split("|")
        if own.strip().isdigit():
            package = name.strip().split(".")[0]
            spent[package] = spent.get(package, 0) + int(own)
    order = sorted(spent, key=lambda package: -spent[package])[:most]
    return ", ".join(f"{package} {spent[package] / 1000:.0f} ms" for package in order)


if __name__ == "__main__":
    page(rows, __doc__)
