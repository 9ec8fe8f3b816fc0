"""Measure every page, each in a process of its own, and write `benchmarks/RESULTS.md` of what they found.

    python -m benchmarks                     # all, about two hours on an idle machine
    python -m benchmarks training updates    # these; the rest stand as they were measured last

What a page found stays in `benchmarks/results`, with its machine and date.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.growth import Curve, table
from benchmarks.measure import Measurement, machine, parser
from bgt_core.files import write_json

PAGES = (
    "training",
    "updates",
    "quality",
    "gpu",
    "encoding",
    "static",
    "generation",
    "probing",
    "preparing",
    "starting",
    "embedding_stream",
    "splitting",
    "mining",
    "questions",
    "maps",
    "app",
)
GROWTH = "growth"  # has curves for rows
RESULTS, KEPT = Path(__file__).with_name("RESULTS.md"), Path(__file__).with_name("results")
COLUMNS = ("work", "against", "ratio (range)", "target", "ours", "peer", "error", "floor", "reached", "time goes to")
INTRODUCTION = """\
# Results

A ratio is the peer's time over ours on the same work, the median of the rounds. `reached` is the share
of the floor: what the machine's own matrix product or memory would allow. Targets are limits of the
ratio or, on any machine alike, of the share. The last column is a profile of the run; in it an
operator's floor is that of its own calls (`roofline.py`). The top of each page's file says
how it measures, and what is equal on both sides.
"""
GROWN = """\
Whole commands, each in a process of its own: processor seconds, and memory at most. `growth.py`
says what they read. An exponent is that of the last three points, beyond what the first takes.
"""


@dataclass(frozen=True)
class Page:
    """What a page found, and where and when."""

    command: str
    date: str
    minutes: float
    machine: str
    rows: list[dict[str, Any]]  # fields of `Measurement`, or of `Curve` on the page GROWTH

    @property
    def measurements(self) -> list[Measurement]:
        return [Measurement(**row) for row in self.rows]

    @property
    def origin(self) -> str:
        return f"`{self.command}`, {self.date}, {self.minutes:.0f} minutes. {self.machine}."


def cells(row: Measurement) -> tuple[str, ...]:
    """The row as the table shows it."""
    target = row.target if row.met else f"{row.target}, **missed**"
    compared = row.work, row.against, spread(row), target, row.ours, row.peer, row.error
    return *compared, row.floor, reached(row), row.bottleneck


def spread(row: Measurement) -> str:
    """The median ratio and the range."""
    return f"**{row.median:.2f}** ({min(row.ratios):.2f}-{max(row.ratios):.2f})"


def reached(row: Measurement) -> str:
    """The share of the floor; "" without one."""
    return "" if row.reached is None else f"{100 * row.reached:.0f}%"


def shown(argument: str) -> str:
    """A part of the command without the paths of who ran it."""
    path = Path(argument)
    return "FOLDER" if path.is_dir() else path.name if path.is_file() else argument


def document(pages: dict[str, Page]) -> str:
    """RESULTS.md, whole."""
    sections = [INTRODUCTION]
    for name, page in pages.items():
        if name == GROWTH:
            lines = [GROWN, *table([Curve.read(curve) for curve in page.rows])]
        else:
            rows = [COLUMNS, ("---",) * len(COLUMNS), *map(cells, page.measurements)]
            lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        sections.append(
            "\n".join([f"## {name}\n", f"{page.origin}\n", *(lines if page.rows else ["Nothing measured."]), ""])
        )
    missed = [
        f"- {row.work}: {spread(row)}{reached(row) and f', {reached(row)} of the floor'}, target {row.target}; "
        f"its time goes to {row.bottleneck}"
        for name, page in pages.items()
        if name != GROWTH
        for row in page.measurements
        if not row.met
    ]
    return "\n".join([*sections, "## Targets missed\n", *(missed or ["None."]), ""])


def run(name: str, arguments: list[str]) -> Page:
    """Measure a page in a process of its own. Raises CalledProcessError if it fails."""
    print(f"== {name}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", "--json", written, *arguments], check=True)
        rows = json.loads(written.read_text(encoding="utf-8"))
    command = " ".join([f"python -m benchmarks {name}", *map(shown, arguments)])
    minutes = (time.monotonic() - begun) / 60
    return Page(command, f"{datetime.now(UTC):%Y-%m-%d}", round(minutes, 1), machine(), rows)


def kept() -> dict[str, Page]:
    """Every page that has been measured, in order."""
    files = {name: KEPT / f"{name}.json" for name in (*PAGES, GROWTH)}
    return {name: Page(**json.loads(file.read_text("utf-8"))) for name, file in files.items() if file.exists()}


def main() -> None:
    arguments = parser(__doc__)
    every = (*PAGES, GROWTH)
    arguments.add_argument("pages", nargs="*", metavar="PAGE", help=f"any of {', '.join(every)}; by default all")
    options = vars(arguments.parse_args())
    names = options.pop("pages") or every
    if unknown := sorted({*names} - {*every}):
        arguments.error(f"'{unknown[0]}' is no page; choose from {', '.join(every)}")
    passed = [part for name, value in options.items() if value is not None for part in (f"--{name}", str(value))]
    failed = []
    for name in names:
        try:
            page = run(name, passed)
        except subprocess.CalledProcessError:
            failed.append(name)
            continue
        KEPT.mkdir(exist_ok=True)
        write_json(KEPT / f"{name}.json", asdict(page))
        RESULTS.write_text(document(kept()), encoding="utf-8")
    if failed:
        sys.exit(f"These pages failed, and their rows are older: {', '.join(failed)}")
    print(f"{RESULTS} written.")


if __name__ == "__main__":
    main()
