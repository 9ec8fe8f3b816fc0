"""Run every page, each in a process of its own; print their rows and write `benchmarks/RESULTS.md`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
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
    "generation",
    "probing",
    "preparing",
    "starting",
    "embedding_stream",
    "mining",
    "maps",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
COLUMNS = ("work", "against", "ratio (range)", "target", "ours", "peer", "error", "floor", "reached", "time goes to")


def cells(row: Measurement) -> tuple[str, ...]:
    """The row as the table shows it."""
    spread = f"**{row.median:.2f}** ({min(row.ratios):.2f}-{max(row.ratios):.2f})"
    reached = "" if row.reached is None else f"{100 * row.reached:.0f}%"
    target = row.target if row.met else f"{row.target}, **{row.verdict}**"
    return row.work, row.against, spread, target, row.ours, row.peer, row.error, row.floor, reached, row.bottleneck


def shown(argument: str) -> str:
    """A part of the command without the paths of who ran it."""
    path = Path(argument)
    return "FOLDER" if path.is_dir() else path.name if path.is_file() else argument


def document(rows: list[Measurement], minutes: float, arguments: list[str]) -> str:
    """RESULTS.md, whole."""
    missed = [
        f"- {row.work}: {row.median:.2f}, target {row.target}, {row.verdict}; its time goes to {row.bottleneck}"
        for row in rows
        if not row.met
    ]
    table = [COLUMNS, ("---",) * len(COLUMNS), *map(cells, rows)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in table]
    command = " ".join(["python -m benchmarks", *map(shown, arguments)])
    return "\n".join(
        [
            "# Results",
            "",
            f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {minutes:.0f} minutes. {machine()}.",
            "",
            "A ratio is the peer's time over ours on the same work, the median of the rounds. `reached` is the share",
            "of the floor: what this machine's own matrix product or memory would allow. Beside a miss stands the",
            "ratio if all of it were reached. The last column is a profile of the run; in it an operator's floor is",
            "that of its own calls (`roofline.py`). How each page measures, and what is equal on both sides, stands",
            "at the top of its file.",
            "",
            *lines,
            "",
            "## Targets missed",
            "",
            *(missed or ["None."]),
            "",
        ]
    )


def growth(curves: list[Curve]) -> str:
    """The section of RESULTS.md on how cost grows."""
    return "\n".join(
        [
            "",
            "## How cost grows",
            "",
            "Whole commands, each in a process of its own: processor seconds, and memory at most. `growth.py`",
            "says what they read. An exponent is that of the last three points, beyond what the first takes.",
            "",
            *table(curves),
            "",
        ]
    )


def run(name: str, folder: Path, arguments: list[str]) -> dict[str, Any]:
    """What a page writes in a process of its own, and the seconds it took; read where `folder` has it already."""
    folder.mkdir(parents=True, exist_ok=True)
    kept, written = folder / f"{name}.json", folder / f"{name}.rows"
    if not kept.exists():
        print(f"== {name}", flush=True)
        begun = time.monotonic()
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", "--json", written, *arguments], check=True)
        rows = json.loads(written.read_text(encoding="utf-8"))
        write_json(kept, {"seconds": time.monotonic() - begun, "rows": rows})
    return json.loads(kept.read_text(encoding="utf-8"))


def main() -> None:
    keeping = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    keeping.add_argument("--keep", type=Path, help="a folder for the rows of each page that ends; it is not run again")
    kept, arguments = keeping.parse_known_args()
    parser(__doc__, [keeping]).parse_args()  # mistakes end here, not in the first page
    with tempfile.TemporaryDirectory() as folder:
        pages = {name: run(name, kept.keep or Path(folder), arguments) for name in (*PAGES, "growth")}
    curves = [Curve.read(grown) for grown in pages["growth"]["rows"]]
    rows = [Measurement(**row) for name in PAGES for row in pages[name]["rows"]]
    text = document(rows, sum(done["seconds"] for done in pages.values()) / 60, arguments) + growth(curves)
    RESULTS.write_text(text, encoding="utf-8")
    print(f"{RESULTS} written.\n{text[text.index('## Targets missed') :]}", end="")


if __name__ == "__main__":
    main()
