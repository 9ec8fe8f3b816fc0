"""What a page found, where and when, as it is kept."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from bgt_core.files import write_json


@dataclass(frozen=True)
class Page:
    """What a page found, and where and when."""

    command: str
    date: str
    minutes: float
    machine: str
    rows: list[dict[str, Any]]  # fields of `Measurement`, or of `Curve` on the page of growth

    @property
    def name(self) -> str:
        return self.command.split()[3]

    @property
    def origin(self) -> str:
        return f"`{self.command}`, {self.date}, {self.minutes:.0f} minutes. {self.machine}."


class Record:
    """The file of a page, written anew with each row, so that a run that is cut counts."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.begun, self.machine = path, time.monotonic(), machine()
        self.rows: list[dict[str, Any]] = []
        arguments = [shown(part) for part in sys.argv[1:]]
        if "--json" in arguments:
            at = arguments.index("--json")
            del arguments[at : at + 2]
        self.command = " ".join([f"python -m benchmarks {Path(sys.argv[0]).stem}", *arguments])

    def add(self, row: object) -> None:
        """A dataclass of figures."""
        self.rows.append(asdict(row))
        if self.path:
            minutes = round((time.monotonic() - self.begun) / 60, 1)
            page = Page(self.command, f"{datetime.now(UTC):%Y-%m-%d}", minutes, self.machine, self.rows)
            write_json(self.path, asdict(page))


def shown(argument: str) -> str:
    """A part of the command without the paths of who ran it."""
    path = Path(argument)
    return "FOLDER" if path.is_dir() else path.name if path.is_file() else argument


def machine() -> str:
    """The machine and the versions that decide the figures."""
    names = [line for line in _cpuinfo() if line.startswith("model name")]
    model = names[0].split(":", 1)[1].strip() if names else platform.processor() or platform.machine()
    features = ", ".join(
        name for name, present in torch.cpu.get_capabilities().items() if present is True and "bf16" in name
    )
    packages = ("torch", "numpy", "sentencepiece", "transformers", "sentence-transformers", "faiss-cpu", "scikit-learn")
    versions = ", ".join(f"{name} {installed}" for name in packages if (installed := version_of(name)))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    card = ""
    if torch.cuda.is_available():
        card = f"{torch.cuda.get_device_name()}, driver {driver()}, CUDA {torch.version.cuda}; "
    return (
        f"{card}{model}, {os.cpu_count()} cores ({features or 'no native bf16'}), {memory:.0f} GiB; "
        f"Python {platform.python_version()}, {versions}"
    )


def driver() -> str:
    """The version of the GPU's driver; "unknown" without NVIDIA's tool."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def version_of(package: str) -> str | None:
    """None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
