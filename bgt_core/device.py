"""Where a run computes, in which precision, and from which seed."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from bgt_core.errors import NotFound, UsageError, check_choice

PRECISIONS = ("auto", "fp32", "bf16")
INT8 = "int8"  # of embedding alone
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


# A forked process has torch's pool of threads, but none of its threads, and would wait for them for ever.
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
        raise UsageError(f"'{name}' is none of auto, cpu, cuda, cuda:1, ...", parameter="device")
    device = torch.device(name.removesuffix(":0") if name.startswith("cpu") else name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise NotFound(f"'{name}': this machine has no such CUDA device; use 'cpu'.", parameter="device")
    return device


def seed_everything(*numbers: int) -> None:
    """Seed torch's generators of every device from these numbers (none negative)."""
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]))


def keep_memory() -> None:
    """Let freed memory stay with this process, where the C library is glibc, until `release_memory`.

    A step takes and frees the same few hundred megabytes as the one before: each time the system would fill them with
    zeros anew, a thirtieth of the step.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, size in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_THRESHOLD, 2**25)):  # 2**25 is the most it takes
            libc.mallopt(option, size)


def release_memory() -> None:
    """Hand freed memory back to the system, where the C library is glibc.

    Batches of changing shapes fragment its heap: without this a small run on a CPU grew from 2 to 6 GB in ten
    minutes. A call costs a tenth of a step.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def check_precision(precision: str, allowed: Sequence[str] = PRECISIONS) -> None:
    """UsageError for what is none of `allowed`."""
    check_choice(allowed, precision=precision)


def resolve(device: torch.device, precision: str) -> str:
    """ "fp32" or "bf16": "auto" is bf16 on hardware that multiplies it natively. Raises as `check_precision`."""
    check_precision(precision)
    if precision != "auto":
        return precision
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities = torch.cpu.get_capabilities()
        native = capabilities.get("amx_bf16") or capabilities.get("avx512_bf16")
    return "bf16" if native else "fp32"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Products in that precision; everything else stays in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=resolve(device, precision) == "bf16")
