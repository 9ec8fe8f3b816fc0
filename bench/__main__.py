"""Run the benchmarks of each kind of work (a "page") in a separate process, and write the results to RESULTS.md.

    python -m bench                                      # measure all pages: an hour on an idle machine
    python -m bench training app                         # measure these pages; the others keep their results
    python -m bench training --json page.json            # measure one page in this process; keep RESULTS.md as it is
    python -m bench training --device cuda --json gpu.json   # run this on a machine with a GPU
    python -m bench --keep gpu.json                      # add the page that was measured on the other machine

The results of each page are stored in `bench/results`, with a description of the machine and the date.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from bench.measure import Measurement, Page, new_page
from bgt_core.files import write_json
from bgt_core.tables import Table, markdown

PAGES = ("training", "encoding", "generation", "probing", "mining", "app")
RESULTS, KEPT = Path(__file__).with_name("RESULTS.md"), Path(__file__).with_name("results")
COLUMNS = ("work", "against", "ratio (range)", "target", "ours", "peer", "error", "floor", "reached")
INTRODUCTION = """\
# Results

A ratio is the peer's time divided by ours, for the same work: the median of all rounds, with its range.
The floor is the time that the matrix products alone would take at the machine's fastest rate. `reached`
is the floor divided by our time. A target limits the ratio or `reached`. The docstring of each page's
module describes the measurement, and what is equal on both sides.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command. Each page uses only some of the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"one of {', '.join(PAGES)}; by default all")
    parser.add_argument("--threads", type=int, default=1, help="number of threads; with several, times are wall-clock")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="cpu, or (only for training) cuda to use a GPU")
    parser.add_argument("--toy", action="store_true", help="use tiny sizes, only to check that a page runs")
    parser.add_argument("--released", type=Path, help="for training: folder of a clone of the paper's code")
    parser.add_argument("--senteval", type=Path, help="for probing: folder of a clone of SentEval")
    parser.add_argument("--data", type=Path, help="for app: file of English-French pairs, as for `bgt train --data`")
    parser.add_argument("--json", type=Path, help="measure one page in this process, and write its rows to this file")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add a page that --json wrote on another machine")
    return parser


def cells(row: Measurement) -> tuple[str, ...]:
    """Return the cells of a measurement, which is one row in the table of a page."""
    target = row.target if row.met else f"{row.target}, **missed**"
    return row.work, row.against, row.spread, target, row.ours, row.peer, row.error, row.floor, row.share


def document(pages: dict[str, Page]) -> str:
    """Return the text of RESULTS.md with these pages of results."""
    sections, missed = [INTRODUCTION], []
    for name, page in pages.items():
        rows = [Measurement(**row) for row in page["rows"]]
        origin = f"`{page['command']}`, {page['date']}, {page['minutes']:.0f} minutes. {page['machine']}."
        sections.append("\n".join([f"## {name}\n", f"{origin}\n", *markdown(Table(COLUMNS, [*map(cells, rows)])), ""]))
        for row in (row for row in rows if not row.met):
            share = f", {row.share} of the floor" if row.share else ""
            missed.append(f"- {row.work}: {row.spread}{share}, target {row.target}")
    return "\n".join([*sections, "## Targets missed\n", *(missed or ["None."]), ""])


def read(path: Path) -> Page:
    """Read a page of results that the option --json wrote."""
    return json.loads(path.read_text("utf-8"))


def keep(page: Page) -> None:
    """Store a page of results instead of its earlier version, and write RESULTS.md."""
    KEPT.mkdir(exist_ok=True)
    name = "gpu" if "--device cuda" in page["command"] else page["command"].split()[3]
    write_json(KEPT / f"{name}.json", page)
    files = [KEPT / f"{name}.json" for name in ("training", "gpu", *PAGES[1:])]
    RESULTS.write_text(document({file.stem: read(file) for file in files if file.exists()}), encoding="utf-8")


def measure(name: str, options: argparse.Namespace, words: list[str]) -> None:
    """Measure one page in this process. After each row, print it and write the page, so that no row is lost."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    begun, page = time.monotonic(), new_page([name, *words])
    for row in import_module(f"bench.{name}").rows(options):
        page["rows"].append(asdict(row))
        page["minutes"] = round((time.monotonic() - begun) / 60, 1)
        write_json(options.json, page)
        print(" | ".join(cells(row)), flush=True)


def main() -> None:
    """Run the benchmarks. If a page fails, the other pages are still measured."""
    arguments, words, failed = parser(), sys.argv[1:], []
    options = arguments.parse_args(words)
    if unknown := sorted({*options.pages} - {*PAGES}):
        arguments.error(f"unknown page '{unknown[0]}'; choose from {', '.join(PAGES)}")
    words = [word for word in words if word not in PAGES]
    if options.keep:
        return keep(read(options.keep))
    if options.json:
        if len(options.pages) != 1:
            arguments.error("--json needs exactly one page")
        at = words.index("--json")
        return measure(options.pages[0], options, words[:at] + words[at + 2 :])
    for name in options.pages or PAGES:
        print(f"== {name}", flush=True)
        with TemporaryDirectory() as folder:
            written = Path(folder) / "page.json"
            command = [sys.executable, "-m", "bench", name, *words, "--json", str(written)]
            if subprocess.run(command).returncode:
                failed.append(name)
            elif written.exists():  # a page on which nothing could be measured has no file
                keep(read(written))
    if failed:
        sys.exit(f"These pages failed, and their rows are older: {', '.join(failed)}")
    print(f"{RESULTS} written.")


if __name__ == "__main__":
    main()
