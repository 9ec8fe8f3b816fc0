"""Time several implementations of the same work in turn, in rounds; compare them by the median of all rounds' ratios.

With one thread, the clock is the processor time of this process, which other programs hardly affect. With several
threads and on a GPU, it is wall-clock time, so the machine must be idle.
"""

from __future__ import annotations

import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # makes torch use huge memory pages, as `bgt train` does
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bgt_core.backend import linear, multiply_int8, prepack_int8

CPU = torch.device("cpu")
Page = dict[str, Any]  # has the keys command, date, minutes, machine, rows (each has the fields of a `Measurement`)
SIDE, SIDE_ON_GPU = 1_024, 8_192  # size of the square matrices that `product_rate` multiplies
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
PACKAGES = ("torch", "numpy", "sentencepiece", "transformers", "sentence-transformers", "faiss-cpu", "scikit-learn")


@dataclass(frozen=True)
class Measurement:
    """One row on a page of results."""

    work: str  # description of the measured work
    against: str  # the other tool, or the limit, that our time is compared with
    ratios: list[float]  # for each round, the other tool's time divided by ours; for a limit, the measured value
    target: str  # such as ">= 5" for the median of `ratios`, or ">= 75 % of the floor" for `reached`
    ours: str  # our median speed or value, with its unit
    peer: str
    error: str  # measured deviation from the exact result
    floor: str = "none stated"  # the number of operations, and our speed if it were limited only by `product_rate`
    reached: float | None = None  # the floor divided by our time; None if there is no floor

    @property
    def met(self) -> bool:
        sign, limit, *of_floor = self.target.split()
        reached = 100 * self.reached if of_floor and self.reached else median(self.ratios)
        return reached >= float(limit) if sign == ">=" else reached <= float(limit)

    @property
    def spread(self) -> str:
        return f"**{median(self.ratios):.2f}** ({min(self.ratios):.2f}-{max(self.ratios):.2f})"

    @property
    def share(self) -> str:
        """The floor divided by our time, in percent; "" if there is no floor."""
        return "" if self.reached is None else f"{100 * self.reached:.0f}%"


def compare(
    work: str,
    against: str,
    ours: Sequence[float],
    peer: Sequence[float],
    target: str,
    error: str,
    unit: str,
    amount: float,
    operations: float = 0.0,
    rate: float = 1.0,
) -> Measurement:
    """Return the row that compares our code with another tool; `ours` and `peer` are the seconds of each round.

    A round processes `amount` units, such as 1,000 sentences; `unit` is the name of the units in the plural. The floor
    is the time of `operations` at `rate` operations per second (see `product_rate`), and not stated for 0 `operations`.
    """
    spent, each = median(ours), operations / amount
    rates = [f"{amount / seconds:,.0f} {unit}/s" for seconds in (spent, median(peer))]
    ratios = [slow / fast for slow, fast in zip(peer, ours, strict=True)]
    row = Measurement(work, against, ratios, target, rates[0], rates[1], error)
    if not operations:
        return row
    floor = f"{each / 1e6:,.0f} MFLOP each, {rate / each:,.0f} {unit}/s"
    return replace(row, floor=floor, reached=operations / rate / spent)


def turns(
    forms: Mapping[str, Callable[[int], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Measure the seconds of each version of the work in each round, in alternating order, after a warm-up of each."""
    for form in forms.values():
        form(0)
    times: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(rounds):
        for name in list(forms)[:: 1 if number % 2 else -1]:
            begun = clock()
            forms[name](number)
            times[name].append(clock() - begun)
    return times


def clock_of(threads: int, device: torch.device = CPU) -> Callable[[], float]:
    """Return a clock, in seconds, for this number of threads. On a GPU, it first waits for the device."""

    if device.type == "cuda":

        def synchronised() -> float:
            torch.cuda.synchronize(device)
            return time.perf_counter()

        return synchronised
    return time.process_time if threads == 1 else time.perf_counter


def product_rate(dtype: torch.dtype, threads: int, device: torch.device = CPU) -> float:
    """Return the speed of large matrix products in operations per second: the fastest of 6 trials."""
    clock, side = clock_of(threads, device), SIDE if device.type == "cpu" else SIDE_ON_GPU
    if dtype == torch.int8:  # the inputs have 8 bits, the output is in single precision
        weight = torch.randint(-127, 128, (side, side), dtype=torch.int8)
        left = torch.randint(0, 255, (side, side), dtype=torch.uint8)
        scales = torch.ones(side)
        multiply = partial(multiply_int8, left, 0.03, 128, prepack_int8(weight), scales, None, torch.float32)
    else:
        multiply = partial(linear, *torch.randn(2, side, side, device=device).to(dtype))
    repeat, best = max(1, int(4e10 / (2 * side**3))), float("inf")
    for _ in range(6):
        begun = clock()
        for _ in range(repeat):
            multiply()
        best = min(best, (clock() - begun) / repeat)
    return 2 * side**3 / best


def new_page(words: Sequence[str]) -> Page:
    """Return an empty page for a command, without the user's paths, but with this machine and today's date."""
    page, *options = words  # a folder of the page's name may exist, such as `app`
    shown = ("FOLDER" if Path(word).is_dir() else Path(word).name if Path(word).is_file() else word for word in options)
    about = {"command": " ".join(["python -m bench", page, *shown]), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    return {**about, "minutes": 0.0, "machine": machine(), "rows": []}


def machine() -> str:
    """Describe this machine, and list the versions of the packages that affect the results."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    has_bf16 = [name for name, there in torch.cpu.get_capabilities().items() if there is True and "bf16" in name]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}; "] if torch.cuda.is_available() else []
    parts += [models[0] if models else platform.processor() or platform.machine(), f", {os.cpu_count()} cores "]
    parts += [f"({', '.join(has_bf16) or 'no native bf16'}), {memory:.0f} GiB; Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            parts.append(f", {package} {version(package)}")
        except PackageNotFoundError:
            continue
    return "".join(parts)
