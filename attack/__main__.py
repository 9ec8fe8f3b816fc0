"""`make attack`: every part, bounded, on two processes; or `python -m attack PART --replay SEED`, one try alone.

Prints each failure with its seed, and a table; `--write` puts that into docs/reliability.md.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}  # forked processes must not share threads

import argparse
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import torch

from attack import commands, pages
from attack.trying import Tried, run

PARTS = ("oracle", "fuzz", "hostile", "addresses", "states", "disks", "together", "nodes", "kills")
ROOT_ONLY = "nodes"


def table(rows: list[Tried]) -> str:
    lines = ["| part | tried | failed | minutes |", "|---|---:|---:|---:|"]
    lines += [f"| {row.part} | {row.tried:,} | {len(row.failures):,} | {row.minutes:.1f} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; by default all that the user may run"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the first try; each further try adds 1")
    parser.add_argument("--count", type=int, help="number of tries of each part")
    parser.add_argument("--minutes", type=float, default=10.0, help="time limit of each part")
    parser.add_argument("--replay", type=int, metavar="SEED", help="repeat the try of one part with this seed")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    options = parser.parse_args()
    if unknown := sorted({*options.parts} - {*PARTS}):
        parser.error(f"'{unknown[0]}' is no part; choose from {', '.join(PARTS)}")
    torch.set_num_threads(1)
    folder, rows = Path(tempfile.mkdtemp(prefix="bgt-attack-")), []
    commands.warm()
    print(f"seeds from {options.seed if options.replay is None else options.replay} on", flush=True)
    try:
        data = commands.shared_data(folder / "data")
        for part in options.parts or [part for part in PARTS if part != ROOT_ONLY or os.geteuid() == 0]:
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
