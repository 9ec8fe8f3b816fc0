"""How the GPU page measures: on the wall, the device waited for, within the time of a part."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from benchmarks.measure import peak_memory
from benchmarks.workload import PAPER, SMALL, UPDATE, Form, Size


@dataclass(frozen=True)
class Scale:
    """What is run: two models, the tokens of an update, micro-batches from the largest, and the width of a product."""

    small: Size
    large: Size
    update: int
    micro: tuple[int, ...]
    product: int
    sentences: int  # of encoding
    rounds: int  # at most


@dataclass(frozen=True)
class Place:
    """Where and how long a part is measured."""

    scale: Scale
    device: torch.device
    begun: float  # by `time.monotonic`; importing torch counts

    def over(self, seconds: float, done: int) -> bool:
        """Whether that many seconds of the part have passed, or all its rounds are done."""
        return time.monotonic() - self.begun > seconds or done >= self.scale.rounds


TOY = Size(
    "d=16, 1+1 layers",
    {"model.d_model": 16, "model.encoder_layers": 1, "model.ffn_dim": 16, "model.heads": 2},
    vocab=400,
    ours=0,
    theirs=(),
)
SCALES = {
    "full": Scale(SMALL, PAPER, UPDATE, (25_000, 12_500, 6_000, 2_000), 8_192, 8_000, 50),
    "tiny": Scale(TOY, TOY, 600, (600, 300), 128, 64, 1),
}


def rounds(
    ours: Callable[[], object], peer: Callable[[], object], place: Place, until: float
) -> tuple[list[float], list[float]]:
    """Seconds of both sides, in turns, until the part has run that long; a first turn of each is not timed."""
    times: tuple[list[float], list[float]] = ([], [])
    ours(), peer()
    while not times[0] or not place.over(until, len(times[0])):
        for side in (0, 1) if len(times[0]) % 2 else (1, 0):
            begun = clock(place.device)
            (ours, peer)[side]()
            times[side].append(clock(place.device) - begun)
    return times


def seconds_of(form: Form, device: torch.device) -> float:
    """Of a whole update, on the wall."""
    begun = clock(device)
    for number in range(len(form.tokens)):
        form.step(number)
    form.finish()
    return clock(device) - begun


def clock(device: torch.device) -> float:
    """Seconds, when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def product_rate(width: int, dtype: torch.dtype, device: torch.device) -> float:
    """Operations a second of a square product, the best of 10."""
    left, right = torch.randn(2, width, width, device=device).to(dtype)
    best = float("inf")
    for _ in range(10):
        begun = clock(device)
        left @ right
        best = min(best, clock(device) - begun)
    return 2 * width**3 / best


def trace(work: Callable[[], object], most: int = 8) -> str:
    """Where the time of one call goes: the operators with the largest share, "mm 61%, copy_ 14%"; on a GPU of its time,
    with the number of kernels launched."""
    on_gpu = torch.cuda.is_initialized()
    activities = [torch.profiler.ProfilerActivity.CPU, *([torch.profiler.ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.profiler.profile(activities=activities) as seen:
        work()
    averages = seen.key_averages()
    own = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    shares = {event.key: getattr(event, own) for event in averages}
    whole = sum(shares.values())
    largest = sorted(shares, key=shares.__getitem__, reverse=True)[:most]
    launched = sum(event.count for event in averages if event.key.startswith(("cudaLaunch", "cuLaunch")))
    named = [f"{name.removeprefix('aten::')[:60]} {100 * shares[name] / whole:.0f}%" for name in largest]
    return ", ".join([*named, *([f"{launched:,} launches a micro-batch"] if on_gpu else [])])


def peak_bytes(work: Callable[[], object], device: torch.device) -> int:
    """What a call takes at most; on a GPU with the weights."""
    if device.type != "cuda":
        return peak_memory(work)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    return torch.cuda.max_memory_allocated(device)
