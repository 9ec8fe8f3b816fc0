"""Measure every page, each in a process of its own, and write `benchmarks/RESULTS.md` of what they found.

    python -m benchmarks                     # all, an hour and a half on an idle machine
    python -m benchmarks training app    # these; the rest stand as they were measured last
    python -m benchmarks --keep gpu.json     # a page that was measured on another machine

What a page found stays in `benchmarks/results`, with its machine and date.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth import Curve, table
from benchmarks.measure import Measurement, parser
from benchmarks.record import Page
from bgt_core.files import write_json

PAGES = (
    "training",
    "gpu",
    "encoding",
    "static",
    "generation",
    "probing",
    "starting",
    "mining",
    "app",
)
GROWTH = "growth"  # has curves for rows
RESULTS, KEPT = Path(__file__).with_name("RESULTS.md"), Path(__file__).with_name("results")
COLUMNS = ("work", "against", "ratio (range)", "target", "ours", "peer", "error", "floor", "reached", "time goes to")
INTRODUCTION = """\
# Results

A ratio is the peer's time over ours on the same work, the median of the rounds. `reached` is the share
of the floor: what the machine's own matrix product or memory would allow. Targets are limits of the
ratio or, on any machine alike, of the share. The last column is a profile of the run. The top of each
page's file says how it measures, and what is equal on both sides.
"""
GROWN = """\
Whole commands, each in a process of its own: processor seconds, and memory at most. `growth.py`
says what they read. An exponent is that of the last three points, beyond what the first takes.
"""


def measurements(page: Page) -> list[Measurement]:
    """Its rows."""
    return [Measurement(**row) for row in page.rows]


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


def document(pages: dict[str, Page]) -> str:
    """RESULTS.md, whole."""
    sections = [INTRODUCTION]
    for name, page in pages.items():
        if name == GROWTH:
            lines = [GROWN, *table([Curve.read(curve) for curve in page.rows])]
        else:
            rows = [COLUMNS, ("---",) * len(COLUMNS), *map(cells, measurements(page))]
            lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        sections.append("\n".join([f"## {name}\n", f"{page.origin}\n", *lines, ""]))
    missed = [
        f"- {row.work}: {spread(row)}{reached(row) and f', {reached(row)} of the floor'}, target {row.target}; "
        f"its time goes to {row.bottleneck}"
        for name, page in pages.items()
        if name != GROWTH
        for row in measurements(page)
        if not row.met
    ]
    return "\n".join([*sections, "## Targets missed\n", *(missed or ["None."]), ""])


def run(name: str, arguments: list[str]) -> Page | None:
    """Measure a page in its own process. None means that it has nothing to measure on this machine. Raises
    CalledProcessError if it fails."""
    print(f"== {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "rows.json"
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", "--json", written, *arguments], check=True)
        return read(written) if written.exists() else None


def read(path: Path) -> Page:
    """The page that `--json` wrote."""
    return Page(**json.loads(path.read_text("utf-8")))


def kept() -> dict[str, Page]:
    """Every page that has been measured, in order."""
    files = {name: KEPT / f"{name}.json" for name in (*PAGES, GROWTH)}
    return {name: read(file) for name, file in files.items() if file.exists()}


def keep(name: str, page: Page) -> None:
    """Put a page in the place of what it found before, and write RESULTS.md."""
    KEPT.mkdir(exist_ok=True)
    write_json(KEPT / f"{name}.json", asdict(page))
    RESULTS.write_text(document(kept()), encoding="utf-8")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--keep", type=Path, metavar="FILE", help="add the page that `--json` wrote elsewhere")
    every = (*PAGES, GROWTH)
    arguments.add_argument("pages", nargs="*", metavar="PAGE", help=f"any of {', '.join(every)}; by default all")
    options = vars(arguments.parse_args())
    if elsewhere := options.pop("keep"):
        page = read(elsewhere)
        return keep(page.name, page)
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
        if page:
            keep(name, page)
    if failed:
        sys.exit(f"These pages failed, and their rows are older: {', '.join(failed)}")
    print(f"{RESULTS} written.")


if __name__ == "__main__":
    main()
