"""How every figure on the page is measured: both sides in turn on the same work, medians of per-round ratios.

On one thread the clock is the processor time of this process, which other programs on the machine hardly
touch; on more it is the time on the wall, and the machine must be idle.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages, as `bgt train` has them; for both sides alike
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import torch

from benchmarks.record import Record
from bgt_core.backend import Int8Weight, linear, linear_int8

ROUNDS = 5
SIDE = 1_024  # of the matrices whose product is the limit of a machine

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
importlib.import_module(module).main() if module else exec(sys.argv[1])
"""


@dataclass(frozen=True)
class Measurement:
    """One line of the page."""

    work: str  # the measured work
    against: str  # the peer
    ratios: list[float]  # peer's time over ours, or what `target` limits, one per round
    target: str  # ">= 5", "<= 0.6": the limit for the median of `ratios`; ">= 75 % of the floor": that for `reached`
    ours: str  # the median of our absolute figure, with its unit
    peer: str
    error: str  # measured deviation from the exact result
    bottleneck: str  # the slowest operators, from a profile of this run
    floor: str = "none stated"  # minimum by the hardware: operations over the measured rate, bytes over bandwidth
    reached: float | None = None  # share of that floor; None without a floor

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    @property
    def met(self) -> bool:
        sign, limit, *of_floor = self.target.split()
        reached = 100 * self.reached if of_floor and self.reached else self.median
        return reached >= float(limit) if sign == ">=" else reached <= float(limit)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every page takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of both sides; more than 1 uses wall-clock time"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sts", type=Path, help="a folder of YEAR/DATASET.tsv: add STS scores of inexact forms")
    parser.add_argument("--released", type=Path, help="a clone of the code released with the paper: compare with it")
    parser.add_argument("--data", type=Path, help="English-French pairs, as for `bgt train --data`")
    parser.add_argument("--senteval", type=Path, help="a clone of SentEval: compare with it on the probing page")
    parser.add_argument(
        "--probing", type=Path, help="a folder of its English probing files: compare bgt-probe --senteval"
    )
    parser.add_argument("--store", type=Path, help="a store of `bgt retrieve-similar build` with a trained var-siamese")
    parser.add_argument("--earlier", type=Path, help="a checkout of an earlier commit: time its commands and app too")
    parser.add_argument("--queries", type=Path, help="questions that are not in the store, one per line")
    return parser


def page(
    rows: Callable[[argparse.Namespace], Iterable[Measurement]],
    description: str | None,
    own: Callable[[argparse.ArgumentParser], object] = lambda arguments: None,
) -> None:
    """The command line of every page: prints its rows as they come, and writes them for `python -m benchmarks`.

    `own` adds options of the page alone.
    """
    arguments = parser(description)
    own(arguments)
    arguments.add_argument("--json", type=Path, help="output file for the rows")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    record = Record(options.json)
    for row in rows(options):
        record.add(row)
        spread = f"{row.median:.2f} ({min(row.ratios):.2f}-{max(row.ratios):.2f})"
        judged = f"{spread}, target {row.target}: {'met' if row.met else 'missed'}"
        print(f"{row.work} | {judged} | {row.ours} against {row.peer} | {row.error}")
        reached = "" if row.reached is None else f", {100 * row.reached:.0f}% of it reached"
        print(f"    floor: {row.floor}{reached}; time goes to: {row.bottleneck}", flush=True)


def interleave(
    ours: Callable[[int], object], peer: Callable[[int], object], threads: int, rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """Seconds of both sides on round 0, 1, ..., in alternating order, after one untimed round of each.

    Each gets the number of the round and does that round's work.
    """
    clock = clock_of(threads)
    ours(0), peer(0)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        sides = (0, 1) if number % 2 else (1, 0)
        for side in sides:
            begun = clock()
            (ours, peer)[side](number)
            times[side].append(clock() - begun)
    return times


def clock_of(threads: int) -> Callable[[], float]:
    """The clock for that many threads, in seconds."""
    return time.process_time if threads == 1 else time.perf_counter


def over(peer: list[float], ours: list[float]) -> list[float]:
    """The ratio of each round."""
    return [slow / fast for slow, fast in zip(peer, ours, strict=True)]


def product_rate(dtype: torch.dtype, threads: int) -> float:
    """Operations per second of this machine's fastest product of square matrices, `SIDE` x `SIDE`, the best of 5."""
    clock, shape, operations = clock_of(threads), (SIDE, SIDE), 2 * SIDE**3
    if dtype == torch.int8:  # 8 bits in, single precision out
        weight = torch.randint(-127, 128, shape, dtype=torch.int8)
        left = torch.randint(0, 255, shape, dtype=torch.uint8)
        packed = Int8Weight.pack(weight, torch.ones(SIDE))

        def multiply() -> object:
            return linear_int8(left, 0.03, 128, packed, None, torch.float32)
    else:
        left, right = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)

        def multiply() -> object:
            return linear(left, right)

    repeat = max(1, int(4e10 / operations))
    best = float("inf")
    for _ in range(6):
        begun = clock()
        for _ in range(repeat):
            multiply()
        best = min(best, (clock() - begun) / repeat)
    return operations / best


def peak_memory(work: Callable[[], object]) -> int:
    """Bytes that tensors made by one call hold together at most, by the allocator's own record."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


def profile(work: Callable[[], object], most: int = 6) -> str:
    """Where the time of one call goes: torch's operators with the largest shares, "mm 61%, copy_ 14%"."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        work()
    spent = {row.key.removeprefix("aten::"): row.self_cpu_time_total for row in seen.key_averages()}
    largest = sorted(spent, key=lambda name: -spent[name])[:most]
    return ", ".join(f"{name} {100 * spent[name] / sum(spent.values()):.0f}%" for name in largest)


def extra_memory(step: str, against: str, ours: int, peer: int) -> Measurement:
    """The row after that of a training step: bytes beside weights and gradients.

    Args:
        step: What the step is of.
        against: The peer.
        ours: Our bytes.
        peer: The peer's.
    """
    return Measurement(
        work=f"extra peak memory of it, {step}",
        against=against,
        ratios=[ours / peer],
        target="<= 1",
        ours=f"{ours / 2**20:,.0f} MiB beside weights and gradients",
        peer=f"{peer / 2**20:,.0f} MiB",
        error="exact",
        bottleneck="what the backward pass keeps of each layer",
    )


class Cost(NamedTuple):
    """What a process took."""

    seconds: float  # processor time on one thread, wall-clock time on more
    mebibytes: float  # at most


def whole_command(module: str, arguments: Sequence[str], threads: int | None = None, **variables: str) -> Cost:
    """The cost of a command in a fresh process: `main` of `module`, or without one the Python in `arguments`;
    `variables` are added to its environment.

    Raises CalledProcessError where it fails.
    """
    limited = os.environ | variables | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
    with NamedTemporaryFile("r", suffix=".json") as figures:
        command = [sys.executable, "-c", RUN, figures.name, module, *arguments]
        subprocess.run(command, env=limited, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        processor, wall, peak = json.load(figures)
    return Cost(processor if threads == 1 else wall, peak)
