"""Choose a run's device, precision and seed, and call undocumented operators of torch that are faster. Each of these
has a public operator as its fallback.

torch multiplies float32 matrices with MKL, which runs at half speed on processors other than Intel's. There oneDNN is
used instead, except for a weight's gradient, where MKL is as fast on any processor, or faster by up to a third. Both
are exact to rounding. oneDNN also multiplies 8-bit integers, on any processor. A release of torch may change or drop
these operators, so each is tried when this module is imported.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.errors import NotFound, UsageError, check_choice


class Linear(nn.Linear):
    """x W^T + b."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) -> (..., N)."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `F.linear`, autocast included: x (..., K), weight (N, K), bias (N,) -> (..., N)."""
    if x.dim() == 2 and torch.is_grad_enabled() and compiles_shapes(x):
        return _FirstRows.apply(F.linear(_PadRows.apply(x), weight, bias), len(x))
    if not uses_onednn(x) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])
    return _onednn(x, weight, bias)


def compiles_shapes(x: Tensor) -> bool:
    """Whether products of x are compiled for each new shape, as oneDNN does in 16 bits. In training every update has
    another number of tokens, and compiling takes a fifth of the time; sentences to embed come in few shapes."""
    return x.device.type == "cpu" and matmul_dtype(x) == torch.bfloat16


def on_grid(count: int) -> int:
    """Round the count up, by less than an eighth: up to 16 it stays, up to 32 it becomes even, and so on."""
    step = 1 << max(0, (count - 1).bit_length() - 4)
    return -(-count // step) * step


def pad_to_grid(x: Tensor) -> Tensor:
    """(N, H) -> (on_grid(N), H), without a gradient: rows of zeros follow."""
    padded = x.new_empty(on_grid(len(x)), x.shape[1])
    padded[: len(x)], padded[len(x) :] = x, 0
    return padded


class _PadRows(torch.autograd.Function):
    """Pad to the grid. Slices and `F.pad` would fill all rows first, and copy once more in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.rows = len(x)
        return pad_to_grid(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad[: ctx.rows]


class _FirstRows(torch.autograd.Function):
    """Return the first rows, those before `pad_to_grid`."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, rows: int) -> Tensor:
        return padded[:rows]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return pad_to_grid(grad), None


def matmul_dtype(x: Tensor) -> torch.dtype:
    """The dtype of matrix products of x: autocast's if it is enabled, else that of x."""
    device = x.device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else x.dtype


def uses_onednn(x: Tensor) -> bool:
    """Whether products of x use oneDNN. It can't multiply empty matrices, and its operators can't be exported or
    compiled."""
    if not USES_ONEDNN or torch.compiler.is_compiling():
        return False
    return x.device.type == "cpu" and x.dtype == torch.float32 and len(x) > 0


@dataclass(frozen=True, eq=False)
class Int8Weight:
    """A matrix (N, K) in 8 bits, in this CPU's memory layout."""

    packed: Tensor
    scales: Tensor  # (N,) float32, of each row
    zeros: Tensor  # (N,) int64: the rows' zero points, all 0

    @classmethod
    def pack(cls, rounded: Tensor, scales: Tensor) -> Int8Weight:
        """Pack the matrix that is the product of rounded (N, K) int8 and scales (N,)."""
        packed = _prepack_int8(rounded) if HAS_ONEDNN_INT8 else rounded
        return cls(packed, scales, torch.zeros(len(rounded), dtype=torch.long))


def linear_int8(
    x: Tensor, scale: float, zero: int, weight: Int8Weight, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Compute scale * (x - zero) @ W^T + b for x (..., K) uint8 -> (..., N) of `dtype`, with exact sums of integers.

    On a CPU without VNNI, oneDNN adds pairs of products in 16 bits, so there x must be at most 127.
    """
    if HAS_ONEDNN_INT8:
        return _onednn_int8(x, scale, zero, weight, bias, dtype)
    return F.linear((x.float() - zero) * scale, weight.packed.float() * weight.scales[:, None], bias).to(dtype)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (..., K), weight (N, K), bias (N,), single precision -> (..., N), without a gradient."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _prepack_int8(rounded: Tensor) -> Tensor:
    """Pack (N, K) int8 into oneDNN's own layout."""
    return torch.ops.onednn.qlinear_prepack(rounded, None)


def _onednn_int8(
    x: Tensor, scale: float, zero: int, weight: Int8Weight, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    matrix = weight.packed, weight.scales, weight.zeros, bias
    return torch.ops.onednn.qlinear_pointwise(x, scale, zero, *matrix, 1.0, 0, dtype, "none", [], "")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """x (M, K), weight (N, K), bias (N,) -> (M, N)."""
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            _onednn(grad, weight.T) if to_x else None,
            grad.T @ x if to_weight else None,
            grad.sum(0) if to_bias else None,
        )


def _works(operator: Callable[[], Tensor], expected: float) -> bool:
    """Whether this release of torch has the operator, with the expected arguments and result."""
    try:
        return operator().item() == expected
    except (AttributeError, RuntimeError, TypeError):
        return False


def _probe() -> tuple[bool, bool]:
    """Whether oneDNN's operators work in single precision, and whether they work in 8 bits."""
    if not torch.backends.mkldnn.is_available():
        return False, False
    x, weight, one = (torch.tensor([row], device="cpu", dtype=torch.float32) for row in ((1, 2), (3, 4), (1,)))
    rounded, whole = (x + 64).to(torch.uint8), weight.to(torch.int8)

    def int8() -> Tensor:
        packed = Int8Weight(_prepack_int8(whole), one.flatten(), torch.zeros(1, dtype=torch.long))
        return _onednn_int8(rounded, 1.0, 64, packed, None, torch.float32)

    return _works(lambda: _onednn(x, weight), 11), _works(int8, 11)


def _is_intel() -> bool:
    cpuinfo = Path("/proc/cpuinfo")  # Linux, where platform.processor() is often empty
    return "GenuineIntel" in (cpuinfo.read_text() if cpuinfo.exists() else platform.processor())


HAS_ONEDNN, HAS_ONEDNN_INT8 = _probe()
USES_ONEDNN = HAS_ONEDNN and not _is_intel()  # in single precision
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # of Adam


def fused_adam_(
    values: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    step: Tensor,
    *,
    lr: float,
) -> None:
    """Make one step of Adam in place, without weight decay and without a gradient (Kingma & Ba 2015, algorithm 1).

    Each parameter, its gradient and its two moments have the same shape; `step` () counts from 1, this step included.
    Uses one fused kernel if torch has it: `torch.optim.Adam`'s overhead is larger than the update of a small network.
    """
    if HAS_FUSED_ADAM:
        _adam_kernel_(values, gradients, means, squares, step, lr)
        return
    steps = step.item()
    for value, gradient, mean, square in zip(values, gradients, means, squares, strict=True):
        mean.lerp_(gradient, 1 - BETA1)
        square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        deviation = square.div(1 - BETA2**steps).sqrt_().add_(EPS)
        value.addcdiv_(mean, deviation, value=-lr / (1 - BETA1**steps))


def _adam_kernel_(
    values: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    step: Tensor,
    lr: float,
) -> None:
    torch._fused_adam_(
        values, gradients, means, squares, [], [step] * len(values),
        lr=lr, beta1=BETA1, beta2=BETA2, weight_decay=0.0, eps=EPS, amsgrad=False, maximize=False,
    )  # fmt: skip


def _has_fused_adam() -> bool:
    """Whether this torch has the operator in the form used above: it is private, and may change in any release."""
    values, gradient, means, squares = torch.zeros(4, 1)
    try:
        _adam_kernel_([values], [gradient], [means], [squares], torch.ones(()), 1e-3)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


HAS_FUSED_ADAM = _has_fused_adam()


# Choose a run's device, precision and seed.

PRECISIONS = ("auto", "fp32", "bf16")
INT8 = "int8"  # for embedding only
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


# A forked process inherits torch's pool of threads without its threads, and would wait for them for ever.
if sys.platform != "win32":
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def pick_device(name: str | torch.device) -> torch.device:
    """Return the device of this machine that "auto", "cpu", "cuda[:i]" or a device of torch names.

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
    """Set torch's own default type and device, float32 and CPU, in a block or in a function that this decorates."""
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
        for option, size in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_THRESHOLD, 2**25)):  # 2**25 is its maximum
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
    """Whether torch can use one of these AVX-512 or AMX instructions (torch's names): the processor has it, and no
    environment variable limits torch or oneDNN to older ones."""
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
