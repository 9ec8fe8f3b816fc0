"""Where a run computes, and from which seed."""

from __future__ import annotations

import ctypes
import re
import sys

import numpy as np
import torch

from bgt_core.contracts import BadInput


def pick_device(name: str) -> torch.device:
    """ "auto", "cpu" or "cuda[:i]" -> a device that is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise BadInput(f"Device '{name}' is none of auto, cpu, cuda, cuda:1, ...", 2)
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BadInput(f"Device '{name}': no such CUDA device is available here; use --device cpu.", 3)
    return device


def seed_everything(*numbers: int) -> None:
    """Whatever torch draws next, on any device, follows from these numbers (not negative)."""
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]))


def release_memory() -> None:
    """Hand freed memory back to the system, where the C library is glibc.

    Batches of ever new shapes leave its heap full of holes: without this a small run on a CPU grew from 2 to
    6 GB in ten minutes. A call costs a tenth of a step.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
