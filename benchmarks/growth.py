"""How cost grows: processor seconds and peak memory of whole commands, from a thousand items to a million.

    python -m benchmarks.growth                # each curve ends where its next point would take over half a minute
    python -m benchmarks.growth --limit 3600   # or over an hour

Each point is a command, or a map of the app, in a process of its own, from start to end: imports, files and the model
that ships are in it. Items are sentences and translations of the project's grammar. An exponent is the slope in
log-log of the last three points, by least squares, of what they take more than the first.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import parser, whole_command
from benchmarks.record import Record
from bgt_core.grammar import pairs

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
UPPER = 3  # points that an exponent is fitted to
LIMIT = 30.0  # seconds of a point
DRAWN = 100_000  # translations drawn together

MAP = """
import numpy as np
from app.core.latents.geometry import Method, fit
fit(np.load({path!r}), Method({method!r}, {neighbours}))
"""


class CurvePoint(NamedTuple):
    """One process."""

    items: int
    seconds: float
    mebibytes: float  # at most


@dataclass(frozen=True)
class Curve:
    """One kind of work at growing sizes."""

    work: str
    items: str  # the unit of the size
    points: list[CurvePoint]
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

    @property
    def next_item(self) -> tuple[float, float]:
        """Milliseconds and bytes that one more item takes, between the last two points."""
        before, last = self.points[-2:]
        more = last.items - before.items
        return 1e3 * (last.seconds - before.seconds) / more, 2**20 * (last.mebibytes - before.mebibytes) / more

    def predicted(self, items: int) -> tuple[float, float]:
        """Seconds and MiB at a larger size: by the slope of the last two points, which is 1 or more; on their line."""
        before, last = self.points[-2:]
        slope = max(1.0, math.log(last.seconds / before.seconds) / math.log(last.items / before.items))
        more = (items - last.items) / (last.items - before.items)
        return last.seconds * (items / last.items) ** slope, last.mebibytes + more * (last.mebibytes - before.mebibytes)


@dataclass(frozen=True)
class Work:
    """What is measured: in a folder and of a size, the module whose `main` runs and its arguments."""

    name: str
    items: str
    command: Callable[[Path, int], tuple[str, list[str]]]


def works() -> list[Work]:
    """Every curve."""
    return [
        Work("bgt embed, semantic latent of bgt-en-fr", "lines", embed("semantic")),
        Work("bgt embed, language latent of bgt-en-fr", "lines", embed("language")),
        Work("bgt mine, exact", "lines a side", mine("exact")),
        Work("bgt mine, approximate", "lines a side", mine("approximate")),
        Work("bgt-probe, one task, one seed, both latents", "sentences", probe),
        Work("bgt evaluate sts, both latents, 2,000 resamples", "pairs", sts),
        Work("map by PCA", "points", project("PCA", 15)),
        Work("map by t-SNE", "points", project("t-SNE", 30)),
        Work("map by UMAP", "points", project("UMAP", 15)),
    ]


def embed(latent: str) -> Callable[[Path, int], tuple[str, list[str]]]:
    def command(folder: Path, size: int) -> tuple[str, list[str]]:
        return "bgt_core.cli", embedding(folder, size, latent)

    return command


def embedding(folder: Path, size: int, latent: str) -> list[str]:
    """The arguments of `bgt embed`."""
    source, out = text(folder, size, "en"), folder / f"{latent}.{size}.npy"
    return ["embed", str(source), "--out", str(out), "--lang", "en", "--latent", latent]


def mine(index: str) -> Callable[[Path, int], tuple[str, list[str]]]:
    def command(folder: Path, size: int) -> tuple[str, list[str]]:
        sides = [str(text(folder, size, lang)) for lang in ("en", "fr")]
        return "bgt_core.cli", [
            "mine",
            *sides,
            "--out",
            str(folder / "mined.tsv"),
            "--langs",
            "en,fr",
            "--index",
            index,
        ]

    return command


def probe(folder: Path, size: int) -> tuple[str, list[str]]:
    source = text(folder, size, "en")
    chosen = ["--lang", "en", "--task", "length", "--data", str(source), "--max-items", str(size)]
    return "probes.cli", [*chosen, "--seeds", "1", "--no-baselines", "--no-cache"]


def sts(folder: Path, size: int) -> tuple[str, list[str]]:
    """Each sentence with one of the same text, some rows on; gold is the length they share, which is no matter."""
    file = folder / f"sts{size}" / "2012" / "grammar.tsv"
    if not file.exists():
        file.parent.mkdir(parents=True)
        sentences = [texts["en"] for texts in translations(size)]
        with file.open("w", encoding="utf-8") as out:
            for left, right in zip(sentences, sentences[1:] + sentences[:1], strict=True):
                out.write(f"{5 * min(len(left), len(right)) / max(len(left), len(right)):.2f}\t{left}\t{right}\n")
    return "bgt_core.cli", ["evaluate", "sts", str(file.parents[1]), "--sets", "2012"]


def project(method: str, neighbours: int) -> Callable[[Path, int], tuple[str, list[str]]]:
    def command(folder: Path, size: int) -> tuple[str, list[str]]:
        path = folder / f"semantic.{size}.npy"
        if not path.exists():  # the curve of `bgt embed` ended before
            whole_command("bgt_core.cli", embedding(folder, size, "semantic"), threads=1)
        return "", [MAP.format(path=str(path), method=method, neighbours=neighbours)]

    return command


def text(folder: Path, size: int, lang: str) -> Path:
    """A file of so many lines."""
    path = folder / f"{lang}.{size}.txt"
    if not path.exists():
        lines = (texts[lang] for texts in translations(size))
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def translations(count: int) -> Iterator[dict[str, str]]:
    """Translations, nearly all of them different."""
    return islice(chain.from_iterable(map(drawn, range(-(-count // DRAWN)))), count)


@cache
def drawn(seed: int) -> list[dict[str, str]]:
    return [pair.texts for pair in pairs(DRAWN, seed)]


def curve(work: Work, folder: Path, threads: int, limit: float) -> Curve:
    """Its points, up to the one that would take more seconds than the limit, or half of the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**21
    grown = Curve(work.name, work.items, [])
    for size in SIZES:
        if len(grown.points) > 1:
            seconds, mebibytes = grown.predicted(size)
            if mebibytes > memory:
                return replace(grown, ended=f"{size:,} would take about {mebibytes / 1024:,.0f} GiB")
            if seconds > limit:
                return replace(grown, ended=f"{size:,} would take about {seconds:,.0f} s")
        done = whole_command(*work.command(folder, size), threads)
        grown.points.append(CurvePoint(size, done.seconds, done.mebibytes))
    return grown


def table(curves: Sequence[Curve]) -> list[str]:
    """The curves as lines of Markdown."""
    sizes = [f"{size:,}" for size in SIZES]
    head = ["work", *sizes, "exponent: time", "memory", "one more item", "ends there because"]
    rows = [head, ["---"] * len(head)]
    for grown in curves:
        cells = {f"{items:,}": f"{seconds:,.1f} s, {peak:,.0f} MiB" for items, seconds, peak in grown.points}
        milliseconds, size = grown.next_item
        exponents = [f"{grown.exponent(column):.2f}" for column in ("seconds", "mebibytes")]
        each = f"{milliseconds:.2g} ms, {max(0, size):,.0f} bytes"
        name = f"{grown.work}, {grown.items}"
        rows.append([name, *(cells.get(size, "") for size in sizes), *exponents, each, grown.ended])
    return ["| " + " | ".join(row) + " |" for row in rows]


def main() -> None:
    options = growth_parser().parse_args()
    record, curves = Record(options.json), []
    with TemporaryDirectory() as folder:
        for work in works():
            if options.only in work.name:
                curves.append(curve(work, Path(folder), options.threads, options.limit))
                record.add(curves[-1])
                print(table(curves)[-1], flush=True)
    print("\n".join(table(curves)))


def growth_parser() -> argparse.ArgumentParser:
    """The options of every page, of which it needs the threads alone, and its own."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--limit", type=float, default=LIMIT, help="time limit of a point in seconds; longer points are skipped"
    )
    arguments.add_argument("--only", default="", help="only curves whose name contains this")
    arguments.add_argument("--json", type=Path, help="output file for the curves")
    return arguments


if __name__ == "__main__":
    main()
