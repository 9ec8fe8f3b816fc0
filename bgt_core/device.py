"""Choose a run's device, precision and seed."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from bgt_core.errors import NotFound, UsageError, check_choice

PRECISIONS = ("auto", "fp32", "bf16")
INT8 = "int8"  # for embedding only
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


# A forked process inherits torch's pool of threads without its threads, and would wait for them for ever.
if sys.platform != "win32":
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def pick_device(name: str | torch.device) -> torch.device:
    """ "auto", "cpu", "cuda[:i]" or a device of torch -> a device of this machine.

    Raises UsageError for another name and NotFound for a GPU that is missing.
    """
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu(:0)?|cuda(:\d+)?", name):
        raise UsageError(f"'{name}': expected auto, cpu, cuda, cuda:1, ...", parameter="device")
    device = torch.device(name.removesuffix(":0") if name.startswith("cpu") else name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise NotFound(f"'{name}': this machine has no such CUDA device; use 'cpu'.", parameter="device")
    return device


@contextmanager
def usual_defaults() -> Iterator[None]:
    """While entered, or in a function that it decorates, torch has its own default type and device: float32, CPU."""
    given = torch.get_default_dtype()
    if given is torch.float32 and torch.get_default_device().type == "cpu":
        yield  # a device that is entered costs time in every operation
        return
    torch.set_default_dtype(torch.float32)
    try:
        with torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(given)


def seed_everything(*numbers: int) -> None:
    """Seed torch's generators of every device from these non-negative numbers."""
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]))


def keep_memory() -> None:
    """Keep freed memory in this process, if the C library is glibc, until `release_memory`.

    A step allocates and frees the same few hundred megabytes as the one before. Otherwise the system would fill them
    with zeros each time, which takes a thirtieth of the step.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, size in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_THRESHOLD, 2**25)):  # 2**25 is the most it takes
            libc.mallopt(option, size)


def release_memory() -> None:
    """Return freed memory to the system, if the C library is glibc.

    Batches of changing shapes fragment its heap: without this a small run on a CPU grew from 2 to 6 GB in ten minutes.
    A call takes a tenth of a step.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def check_precision(precision: str, allowed: Sequence[str] = PRECISIONS) -> None:
    """Raise UsageError for a precision that is not `allowed`."""
    check_choice(allowed, precision=precision)


def resolve(device: torch.device, precision: str) -> str:
    """Choose "fp32" or "bf16": "auto" is bf16 on hardware that supports it natively. Raises as `check_precision`."""
    check_precision(precision)
    if precision != "auto":
        return precision
    return "bf16" if multiplies_bf16(device) else "fp32"


def multiplies_bf16(device: torch.device) -> bool:
    """Whether a device has instructions that multiply bf16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return cpu_has("amx_bf16", "avx512_bf16")


def cpu_has(*instructions: str) -> bool:
    """Whether the processor has one of these instructions of AVX-512 or AMX, by torch's names, and the environment
    variables that limit torch and oneDNN to older ones let them be used."""
    torch_limit, onednn_limit = (os.environ.get(name, "") for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"))
    limited = torch_limit in ("default", "avx2") or re.fullmatch("SSE41|AVX(2.*)?", onednn_limit.upper())
    return not limited and any(torch.cpu.get_capabilities().get(each) for each in instructions)


def warn_if_slow(device: torch.device, precision: str) -> None:
    """Warn of bf16 on a device that only emulates it."""
    if precision == "bf16" and not multiplies_bf16(device):
        name = "processor" if device.type == "cpu" else "GPU"
        text = f"this {name} has no bf16 instructions: products take many times longer than in fp32; use precision auto"
        warnings.warn(text, stacklevel=2)


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Compute matrix products in that precision; everything else stays in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=resolve(device, precision) == "bf16")
