"""How cost grows: processor seconds and peak memory of whole commands, from a thousand items to a million.

    python -m bench growth                # each curve ends where its next point would take over half a minute
    python -m bench growth --limit 3600   # or over an hour

Each point is a command, or a map of the app, in a process of its own, from start to end: imports, files and the model
that ships are in it. Items are sentences and translations of the project's grammar, beyond its 30,000 with a number
behind each. An exponent is the slope in log-log of the last three points, by least squares, of what they take more than
the first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bgt_core.grammar import LIMIT as DIFFERENT
from bgt_core.grammar import pairs

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
UPPER = 3  # points that an exponent is fitted to
MAPS = {"PCA": 15, "t-SNE": 30, "UMAP": 15}  # neighbours

# In a fresh process: runs `main` of a module, then writes seconds, by processor and by wall, and the peak in MiB. The
# peak is from Linux's /proc: `getrusage` would include the process it was forked from.
RUN = """
import atexit, importlib, json, sys, time
figures, module, *sys.argv[1:] = sys.argv[1:]
begun = time.perf_counter()
@atexit.register
def write():
    peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
    json.dump([time.process_time(), time.perf_counter() - begun, peak], open(figures, "w"))
importlib.import_module(module).main()
"""


class CurvePoint(NamedTuple):
    """One process."""

    items: int
    seconds: float  # of the processor on one thread, on the wall on more
    mebibytes: float  # at most


@dataclass(frozen=True)
class Curve:
    """One kind of work at growing sizes."""

    work: str
    items: str  # the unit of the size
    points: list[CurvePoint] = field(default_factory=list)
    ended: str = ""  # why there is no further point

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Curve:
        """From JSON."""
        return cls(**{**stored, "points": [CurvePoint(*point) for point in stored["points"]]})

    def exponent(self, column: str) -> float:
        """Of "seconds" or "mebibytes" beyond those of the first point; NaN for fewer than two points with more."""
        start = getattr(self.points[0], column)
        upper = [point for point in self.points[-UPPER:] if getattr(point, column) > start]
        if len(upper) < 2:
            return math.nan
        sizes, beyond = [point.items for point in upper], [getattr(point, column) - start for point in upper]
        return float(np.polyfit(np.log(sizes), np.log(beyond), 1)[0])

    def predicted(self, items: int) -> tuple[float, float]:
        """Seconds and MiB at a larger size: by the slope of the last two points, which is 1 or more; on their line."""
        before, last = self.points[-2:]
        slope = max(1.0, math.log(last.seconds / before.seconds) / math.log(last.items / before.items))
        more = (items - last.items) / (last.items - before.items)
        return last.seconds * (items / last.items) ** slope, last.mebibytes + more * (last.mebibytes - before.mebibytes)


CURVES = {  # work -> unit of its size
    "bgt embed, semantic latent of bgt-en-fr": "lines",
    "bgt embed, language latent of bgt-en-fr": "lines",
    "bgt mine, exact": "lines a side",
    "bgt mine, approximate": "lines a side",
    "bgt-probe, one task, one seed, both latents": "sentences",
    "bgt evaluate sts, both latents, 2,000 resamples": "pairs",
    **{f"map by {method}": "points" for method in MAPS},
}


def rows(options: argparse.Namespace) -> Iterator[Curve]:
    """Each curve, up to the point that would take more seconds than the limit, or half of the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**21
    with TemporaryDirectory() as name:
        for work in (work for work in CURVES if options.only in work):
            grown = Curve(work, CURVES[work])
            for size in SIZES[:2] if options.toy else SIZES:
                if len(grown.points) > 1:
                    seconds, mebibytes = grown.predicted(size)
                    if mebibytes > memory:
                        grown = replace(grown, ended=f"{size:,} would take about {mebibytes / 1024:,.0f} GiB")
                    elif seconds > options.limit:
                        grown = replace(grown, ended=f"{size:,} would take about {seconds:,.0f} s")
                    if grown.ended:
                        break
                module, arguments = command(work, Path(name), size)
                grown.points.append(CurvePoint(size, *cost(module, arguments, options.threads)))
            yield grown


def command(work: str, folder: Path, size: int) -> tuple[str, list[str]]:
    """The module whose `main` runs, and its arguments."""
    english, french = text(folder, size)
    tool, _, what = work.partition(",")
    vectors = folder / f"semantic.{size}.npy"
    if tool == "bgt embed":
        latent = what.split()[0]
        out = vectors.with_name(f"{latent}.{size}.npy")
        return "bgt_core.cli", ["embed", english, "--out", str(out), "--lang", "en", "--latent", latent]
    if tool == "bgt mine":
        out = str(folder / "mined.tsv")
        return "bgt_core.cli", ["mine", english, french, "--out", out, "--langs", "en,fr", "--index", what.strip()]
    if tool == "bgt-probe":
        chosen = ["--lang", "en", "--task", "length", "--data", english, "--max-items", str(size)]
        return "probes.cli", [*chosen, "--seeds", "1", "--no-baselines"]
    if tool == "bgt evaluate sts":
        return "bgt_core.cli", ["evaluate", "sts", sts(folder, english), "--sets", "2012"]
    if not vectors.exists():  # the curve of `bgt embed` ended before
        cost(*command("bgt embed, semantic", folder, size), 1)
    method = work.split()[-1]
    return "bench.growth", [str(vectors), method, str(MAPS[method])]


def cost(module: str, arguments: Sequence[str], threads: int) -> tuple[float, float]:
    """Seconds, and MiB at most, of a command in a fresh process. Raises CalledProcessError where it fails."""
    with TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        command = [sys.executable, "-c", RUN, str(figures), module, *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": str(threads)}, check=True, **quiet)
        processor, wall, peak = json.loads(figures.read_text())
    return processor if threads == 1 else wall, peak


def text(folder: Path, size: int) -> list[str]:
    """An English and a French file of so many lines, translations of each other."""
    paths = [folder / f"{lang}.{size}.txt" for lang in ("en", "fr")]
    if not paths[0].exists():
        sentences = [pair.texts for pair in pairs(min(size, DIFFERENT))]
        for path in paths:
            lang = path.name[:2]
            texts = (sentences[row % DIFFERENT][lang] for row in range(size))
            numbers = (f" {row // DIFFERENT}" if row >= DIFFERENT else "" for row in range(size))
            lines = (f"{line}{number}\n" for line, number in zip(texts, numbers, strict=True))
            path.write_text("".join(lines), encoding="utf-8")
    return list(map(str, paths))


def sts(folder: Path, english: str) -> str:
    """Each sentence with the next one; gold is the length they share, which is no matter."""
    sentences = Path(english).read_text("utf-8").splitlines()
    file = folder / f"sts{len(sentences)}" / "2012" / "grammar.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as out:
        for left, right in zip(sentences, sentences[1:] + sentences[:1], strict=True):
            out.write(f"{5 * min(len(left), len(right)) / max(len(left), len(right)):.2f}\t{left}\t{right}\n")
    return str(file.parents[1])


def table(curves: Sequence[Curve]) -> list[str]:
    """The curves as lines of Markdown."""
    sizes = [f"{size:,}" for size in SIZES]
    head = ["work", *sizes, "exponent: time", "memory", "one more item", "ends there because"]
    rows = [head, ["---"] * len(head)]
    for grown in curves:
        cells = {f"{items:,}": f"{seconds:,.1f} s, {peak:,.0f} MiB" for items, seconds, peak in grown.points}
        before, last = grown.points[-2:]
        more = last.items - before.items
        milliseconds, size = 1e3 * (last.seconds - before.seconds) / more, 2**20 * (last[2] - before[2]) / more
        exponents = [f"{grown.exponent(column):.2f}" for column in ("seconds", "mebibytes")]
        each = f"{milliseconds:.2g} ms, {max(0, size):,.0f} bytes"
        name = f"{grown.work}, {grown.items}"
        rows.append([name, *(cells.get(size, "") for size in sizes), *exponents, each, grown.ended])
    return ["| " + " | ".join(row) + " |" for row in rows]


def main() -> None:
    """A map of the app, in a process of its own: of stored vectors, by a method, with so many neighbours."""
    from app.core.latents.geometry import Method, fit

    path, method, neighbours = sys.argv[1:]
    fit(np.load(path), Method(method, int(neighbours)))
