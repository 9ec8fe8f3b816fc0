"""Corpus preparation: speed against plain sentencepiece, the gain of a second process, memory.

Preparation reads a TSV, checks, normalises, encodes and filters every pair, splits and writes the store. The peer is
sentencepiece alone, in one process: its sentences lie ready in memory, and nothing is stored. Text is drawn from the
project's grammar. Whatever `--threads` says, the first row counts processor time, that of all processes together over
the number of cores, which other programs hardly disturb; the gain of a second process is timed on the wall.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import sentencepiece

from benchmarks.measure import Measurement, interleave, over, page
from bgt_core import PRETRAINED
from bgt_core.data.encode import COMMAND, MAX_PROCESSES, cores
from bgt_core.data.parallel import Skipped, check, chunks, read_pairs
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import pairs

LANGS = ("en", "fr")
SPEED, FEW, MANY = 200_000, 100_000, 2_000_000  # pairs
DISTINCT = 40_000  # different ones among them; drawn with replacement
MODEL = PRETRAINED / "tokenizer.model"
WALL = 2  # `interleave` times more than one thread on the wall

# Run in a fresh process, which prints its own peak and that of its largest child in KiB. Its own comes from Linux's
# /proc: `getrusage` would include the caller it was forked from, here one with torch.
IDLE = """
from resource import RUSAGE_CHILDREN, getrusage
import bgt_core.data.encode
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
"""
PREPARE = f"""
import sys
{IDLE}
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
source, out, model = sys.argv[1:]
prepare([source], ("en", "fr"), Tokenizer.load(model), out, valid_pairs=1000, seed=1)
print(peak(), getrusage(RUSAGE_CHILDREN).ru_maxrss)
"""


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Speed, scaling and memory."""
    workers = min(cores(), MAX_PROCESSES)
    with TemporaryDirectory() as folder:
        yield from speed(Path(folder), workers, options.rounds)
        yield memory(Path(folder), workers)


def speed(folder: Path, workers: int, rounds: int) -> Iterator[Measurement]:
    """All cores against plain sentencepiece, and two processes against one."""
    source, tokenizer = folder / "pairs.tsv", Tokenizer.load(MODEL)
    write(source, SPEED)
    sides = [list(side) for side in zip(*read_pairs(source, LANGS, Skipped()), strict=True)]
    plain = sentencepiece.SentencePieceProcessor(model_file=str(MODEL))

    def run(count: int) -> None:
        shutil.rmtree(folder / f"by-{count}", ignore_errors=True)
        prepare([source], LANGS, tokenizer, folder / f"by-{count}", valid_pairs=1000, seed=1, workers=count)

    def peer(_: int) -> None:
        for side in sides:
            plain.encode(side, add_eos=True, num_threads=1)

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(processor(lambda: run(workers)) / workers)
        theirs.append(processor(lambda: peer(0)))
    two_processes, one_process = interleave(lambda _: run(2), lambda _: run(1), WALL, rounds)
    names = [file.name for file in (folder / "by-1").iterdir()]
    _, *wrong = filecmp.cmpfiles(folder / "by-1", folder / "by-2", names, shallow=False)
    same = f"files that differ between one process and two: {sum(map(len, wrong))} of {len(names)}"
    alone, together = processor(lambda: run(1)), processor(lambda: run(2))
    parts = {
        "sentencepiece": processor(lambda: peer(0)),
        "reading": processor(lambda: [None for _ in chunks(source, LANGS)]),
        "checking and normalising": sum(processor(partial(check, chunk, LANGS)) for chunk in chunks(source, LANGS)),
    }
    parts["ids to bytes, hashes, writing"] = alone - sum(parts.values())
    spent = ", ".join(f"{name} {100 * part / alone:.0f}%" for name, part in parts.items())
    starting = processor(lambda: subprocess.run(COMMAND, stdin=subprocess.DEVNULL, check=True))
    yield Measurement(
        work=f"preparing {SPEED:,} pairs, {workers} processes, their processor time over {workers}",
        against="one process of plain sentencepiece that stores nothing",
        ratios=over(theirs, ours),
        target=">= 1",
        ours=rate(ours),
        peer=rate(theirs),
        error=same,
        floor=f"sentencepiece alone on {workers} cores, {statistics.median(theirs) / workers:.2f} s",
        reached=statistics.median(theirs) / workers / statistics.median(ours),
        bottleneck=f"of {alone:.2f} s of processor time in one process: {spent}",
    )
    yield Measurement(
        work=f"preparing {SPEED:,} pairs, 2 processes",
        against="1 process of the same",
        ratios=over(one_process, two_processes),
        target=">= 1.7",
        ours=rate(two_processes),
        peer=rate(one_process),
        error=same,
        floor=f"half the time of one process, {statistics.median(one_process) / 2:.2f} s",
        reached=statistics.median(one_process) / 2 / statistics.median(two_processes),
        bottleneck=f"processor time, {together:.2f} s together and {alone:.2f} s in one, "
        f"{starting:.2f} s to start each",
    )


def memory(folder: Path, workers: int) -> Measurement:
    """The peak of all processes on many pairs over that on few."""
    peaks = []  # MiB
    for size in (FEW, MANY):
        source = folder / f"{size}.tsv"
        write(source, size)
        own, largest = printed_numbers(PREPARE, source, folder / f"store-{size}", MODEL)
        peaks.append((own + workers * largest) / 1024)
    (idle,) = printed_numbers(IDLE + "print(peak())")
    return Measurement(
        work=f"peak memory of preparing {MANY:,} pairs, {workers} processes and the caller",
        against=f"that of {FEW:,} pairs",
        ratios=[peaks[1] / peaks[0]],
        target="<= 1.1",
        ours=f"{peaks[1]:.0f} MiB",
        peer=f"{peaks[0]:.0f} MiB",
        error="peaks of all processes added up, each as large as the largest: an upper bound",
        floor="the same memory for any corpus",
        reached=peaks[0] / peaks[1],
        bottleneck=f"a process that only imports holds {idle / 1024:.0f} MiB",
    )


def printed_numbers(script: str, *arguments: Path) -> list[int]:
    """The numbers that a Python script prints."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return list(map(int, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()))


def rate(times: list[float]) -> str:
    """The median, as pairs a second."""
    return f"{SPEED / statistics.median(times):,.0f} pairs/s"


def processor(work: Callable[[], object]) -> float:
    """Seconds of processor time, of this process and of those it started."""
    begun = os.times()
    work()
    return sum(os.times()[:4]) - sum(begun[:4])


def write(file: Path, size: int) -> None:
    """`size` translations, one per line."""
    lines = [f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in pairs(DISTINCT)]
    draw = np.random.default_rng(0)
    with file.open("w", encoding="utf-8") as out:
        for begun in range(0, size, DISTINCT):
            out.writelines(lines[i] for i in draw.integers(DISTINCT, size=min(DISTINCT, size - begun)))


if __name__ == "__main__":
    page(rows, __doc__)
