"""Measure several forms of the same work in turn, and compare their times by the median ratio of all rounds.

With one thread, the clock is the processor time of this process, which other programs hardly affect. With several
threads and on a GPU, it is wall-clock time, so the machine must be idle.
"""

from __future__ import annotations

import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages, as in `bgt train`, for all code that is timed
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bgt_core.backend import linear, multiply_int8, prepack_int8

CPU = torch.device("cpu")
SIDE, SIDE_ON_GPU = 1_024, 8_192  # size of the square matrices whose product defines the machine's limit
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
PACKAGES = ("torch", "numpy", "sentencepiece", "transformers", "sentence-transformers", "faiss-cpu", "scikit-learn")


@dataclass(frozen=True)
class Measurement:
    """One row of a page."""

    work: str  # the measured work
    against: str  # the peer
    ratios: list[float]  # the peer's time divided by ours, or the values that `target` limits, one per round
    target: str  # ">= 5", "<= 0.6": limit for the median of `ratios`; ">= 75 % of the floor": limit for `reached`
    ours: str  # median of our absolute value, with its unit
    peer: str
    error: str  # measured deviation from the exact result
    floor: str = "none stated"  # number of operations, and the speed if they ran at the rate of matrix products
    reached: float | None = None  # share of the floor that our time reaches; None without a floor

    @property
    def met(self) -> bool:
        sign, limit, *of_floor = self.target.split()
        reached = 100 * self.reached if of_floor and self.reached else median(self.ratios)
        return reached >= float(limit) if sign == ">=" else reached <= float(limit)

    @property
    def spread(self) -> str:
        """The median ratio, and the range."""
        return f"**{median(self.ratios):.2f}** ({min(self.ratios):.2f}-{max(self.ratios):.2f})"

    @property
    def share(self) -> str:
        """The reached share of the floor; "" without a floor."""
        return "" if self.reached is None else f"{100 * self.reached:.0f}%"


@dataclass(frozen=True)
class Rated:
    """The unit that a page counts, and the floor of its work."""

    unit: str  # plural, as in "sentences"
    amount: float  # number of units in each round
    operations: float = 0.0  # multiplications and additions per round; 0: no floor
    rate: float = 1.0  # operations per second, from `product_rate`


def compare(
    work: str, against: str, ours: Sequence[float], peer: Sequence[float], rated: Rated, target: str, error: str
) -> Measurement:
    """Return the row that compares two forms, from the seconds of their rounds."""
    spent, each = median(ours), rated.operations / rated.amount
    rates = [f"{rated.amount / seconds:,.0f} {rated.unit}/s" for seconds in (spent, median(peer))]
    return Measurement(
        work=work,
        against=against,
        ratios=[slow / fast for slow, fast in zip(peer, ours, strict=True)],
        target=target,
        ours=rates[0],
        peer=rates[1],
        error=error,
        floor=f"{each / 1e6:,.0f} MFLOP each, {rated.rate / each:,.0f} {rated.unit}/s" if each else "none stated",
        reached=rated.operations / rated.rate / spent if each else None,
    )


def turns(
    forms: Mapping[str, Callable[[int], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Measure the seconds of each form on round 0, 1, ..., after one untimed call of each.

    Each form is called with the number of the round; the order of the forms alternates.
    """
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
    """Return the clock for this number of threads, in seconds; on a GPU, it waits until the device has finished."""

    def synchronised() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    if device.type == "cuda":
        return synchronised
    return time.process_time if threads == 1 else time.perf_counter


def product_rate(dtype: torch.dtype, threads: int, device: torch.device = CPU) -> float:
    """Return the operations per second of the fastest product of large square matrices, the best of 6 measurements."""
    clock, side = clock_of(threads, device), SIDE if device.type == "cpu" else SIDE_ON_GPU
    if dtype == torch.int8:  # 8-bit inputs, single-precision output
        weight = torch.randint(-127, 128, (side, side), dtype=torch.int8)
        left = torch.randint(0, 255, (side, side), dtype=torch.uint8)
        packed, scales = prepack_int8(weight), torch.ones(side)

        def multiply() -> object:
            return multiply_int8(left, 0.03, 128, packed, scales, None, torch.float32)
    else:
        first, second = torch.randn(2, side, side, device=device).to(dtype)

        def multiply() -> object:
            return linear(first, second)

    repeat, best = max(1, int(4e10 / (2 * side**3))), float("inf")
    for _ in range(6):
        begun = clock()
        for _ in range(repeat):
            multiply()
        best = min(best, (clock() - begun) / repeat)
    return 2 * side**3 / best


@dataclass
class Page:
    """The results of a page, with the place and time, in the form in which they are stored."""

    command: str
    date: str
    minutes: float
    machine: str
    rows: list[dict[str, Any]]  # fields of `Measurement`

    @classmethod
    def begin(cls, words: Sequence[str]) -> Page:
        """Return an empty page for this machine and today."""
        command = " ".join(["python -m bench", *map(shown, words)])
        return cls(command, f"{datetime.now(UTC):%Y-%m-%d}", 0.0, machine(), [])

    @property
    def name(self) -> str:
        return "gpu" if "--device cuda" in self.command else self.command.split()[3]


def shown(word: str) -> str:
    """Return a part of the command without the user's paths."""
    path = Path(word)
    return "FOLDER" if path.is_dir() else path.name if path.is_file() else word


def machine() -> str:
    """Describe the machine, and the versions of packages that affect the results."""
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
