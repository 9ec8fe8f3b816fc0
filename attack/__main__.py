"""`make attack`: every part, bounded, on two processes; or `python -m attack PART --replay SEED`, one try alone.

Prints each failure with its seed, and a table; `--write` puts that into docs/reliability.md.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}  # forked processes must not share threads

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import torch

from attack import commands, pages

PARTS = ("fuzz", "hostile", "states", "disks", "together", "kills")
BLOCK = 2_000  # tries of a fast part handed out together


class Tried(NamedTuple):
    """A part that was run."""

    part: str
    tried: int
    failures: list[tuple[int, str]]  # seed, what went wrong
    minutes: float


def tries(part: str, seeds: range, prepared: object, folder: Path) -> list[tuple[int, str]]:
    """What went wrong, by seed."""
    torch.set_num_threads(1)
    attack = import_module(f"attack.{part}").attack
    failures = []
    for seed in seeds:
        place = folder / part / str(seed if part != "fuzz" else os.getpid())
        try:
            failure = attack(seed, prepared, place)
        except Exception as error:  # noqa: BLE001  the attack itself failed: as bad
            failure = f"{type(error).__name__}: {error}"
        if failure:
            failures.append((seed, failure))
            print(f"{part} {seed}: {failure}", flush=True)
    return failures


def run(part: str, seeds: range, data: Path, folder: Path, minutes: float) -> Tried:
    """One part with these seeds, on as many processes as there are cores, until its time is up."""
    begun = time.monotonic()
    module = import_module(f"attack.{part}")
    prepared = module.prepare(data, folder / f"{part}-prepared")
    step = BLOCK if part == "fuzz" else 1
    parts = [seeds[at : at + step] for at in range(0, len(seeds), step)]
    failures, tried = [], 0
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        futures = [(pool.submit(tries, part, block, prepared, folder), len(block)) for block in parts]
        for future, count in futures:
            if time.monotonic() - begun > 60 * minutes and future.cancel():
                continue
            failures += future.result()
            tried += count
    return Tried(part, tried, failures, (time.monotonic() - begun) / 60)


def table(rows: list[Tried]) -> str:
    lines = ["| part | tried | failed | minutes |", "|---|---:|---:|---:|"]
    lines += [f"| {row.part} | {row.tried:,} | {len(row.failures):,} | {row.minutes:.1f} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them unless named")
    parser.add_argument("--seed", type=int, default=0, help="of the first try; the next has the next")
    parser.add_argument("--count", type=int, help="tries of each part, in place of its own number")
    parser.add_argument("--minutes", type=float, default=8.0, help="of each part, at most")
    parser.add_argument("--replay", type=int, metavar="SEED", help="only this try of one part")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args()
    if unknown := sorted({*options.parts} - {*PARTS}):
        parser.error(f"'{unknown[0]}' is no part; choose from {', '.join(PARTS)}")
    torch.set_num_threads(1)
    folder, rows = Path(tempfile.mkdtemp(prefix="bgt-attack-")), []
    try:
        data = commands.shared_data(folder / "data")
        for part in options.parts or PARTS:
            first = options.seed if options.replay is None else options.replay
            count = 1 if options.replay is not None else options.count or import_module(f"attack.{part}").COUNT
            rows.append(run(part, range(first, first + count), data, folder, options.minutes))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{table(rows)}")
    if options.write:
        trail = f"`python -m attack --seed {options.seed}`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores."
        pages.write("table", f"{table(rows)}\n\n{trail}")
    sys.exit(any(row.failures for row in rows))


if __name__ == "__main__":
    main()
