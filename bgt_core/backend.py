"""Choose a run's device, precision and seed, and multiply matrices with torch's fastest operators.

By default, torch multiplies float32 matrices with MKL, which runs at half speed on processors that are not from Intel.
On such processors, this module calls oneDNN instead. The gradients of weights are still computed with MKL, because
oneDNN computes them no faster. Both libraries give the same result up to rounding. On all processors, oneDNN also
multiplies 8-bit integers.

torch does not document its oneDNN operators, and a release of torch may change or drop them. So this module tries each
operator once, during its import. If an operator fails, the module uses a documented one instead.
"""

import ctypes
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.errors import NotFound, UsageError, check_choice

TINY = 1e-30  # lower bound of a matrix's largest absolute value; otherwise a matrix of zeros would get the scale 0


class Linear(nn.Linear):
    """An `nn.Linear` that computes x W^T + b with the function `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., inputs) to (..., outputs)."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `F.linear` with torch's fastest operator: x (..., inputs), weight (outputs, inputs) -> (..., outputs)."""
    if x.dim() == 2 and torch.is_grad_enabled() and compiles_shapes(x):
        return _FirstRows.apply(F.linear(_PadRows.apply(x), weight, bias), len(x))
    if not uses_onednn(x) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Linear.apply(x.flatten(0, -2), weight, bias).unflatten(0, x.shape[:-1])
    return _onednn(x, weight, bias)


def compiles_shapes(x: Tensor) -> bool:
    """Whether oneDNN compiles code for each new shape of x, as it does for 16-bit products on a CPU. Most updates
    have a new number of tokens. Unless x is padded to one of a few shapes, a fifth of training is spent compiling."""
    return x.device.type == "cpu" and matmul_dtype(x) == torch.bfloat16


def on_grid(count: int) -> int:
    """Round a number of rows up by less than 1/8: above 16 to a multiple of 2, above 32 to a multiple of 4, etc."""
    step = 1 << max(0, (count - 1).bit_length() - 4)
    return -(-count // step) * step


def pad_to_grid(x: Tensor) -> Tensor:
    """Append rows of zeros to a matrix: (R, H) -> (on_grid(R), H). `_PadRows` is the same function with a gradient."""
    padded = x.new_empty(on_grid(len(x)), x.shape[1])
    padded[: len(x)], padded[len(x) :] = x, 0
    return padded


class _PadRows(torch.autograd.Function):
    """`pad_to_grid` with a gradient. `F.pad` would be slower, because it sets all rows to 0 and copies the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.rows = len(x)
        return pad_to_grid(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad[: ctx.rows]


class _FirstRows(torch.autograd.Function):
    """Remove the rows of zeros that `pad_to_grid` appended to a matrix."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, rows: int) -> Tensor:
        return padded[:rows]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return pad_to_grid(grad), None


def matmul_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype in which x is multiplied: autocast's dtype if autocast is on, otherwise the dtype of x."""
    device = x.device.type
    on = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if on else x.dtype


def uses_onednn(x: Tensor) -> bool:
    """Whether `linear` multiplies x with oneDNN: if x is float32, on a CPU and not empty, unless torch is compiling."""
    if not USES_ONEDNN or torch.compiler.is_compiling():
        return False
    return x.device.type == "cpu" and x.dtype == torch.float32 and len(x) > 0


class Int8Linear(nn.Module):
    """Compute x W^T + b with 8-bit integers. W is rounded with one scale per row, and x with a single scale. The error
    due to rounding is about 1% of the norm of the result."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        weight = layer.weight.detach()
        self.scales = weight.abs().amax(1).clamp(min=TINY) / 127  # (outputs,) float32
        rounded = (weight / self.scales[:, None]).round().to(torch.int8)  # (outputs, inputs)
        self.packed = prepack_int8(rounded) if HAS_ONEDNN_INT8 else rounded
        self.bias = layer.bias if layer.bias is None else layer.bias.detach()
        # `zero` is the integer that stands for x = 0. On a CPU without VNNI instructions, oneDNN adds pairs of products
        # in 16 bits; to avoid an overflow, x is then rounded to 7 bits instead of 8.
        self.zero = 128 if cpu_has("avx512_vnni") else 64

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., inputs) to (..., outputs), in the dtype that `matmul_dtype` returns for x."""
        low, high = x.aminmax()
        scale = max(-low.item(), high.item(), TINY) / (self.zero - 1)
        half = torch.tensor(self.zero + 0.5, dtype=torch.float32, device="cpu")
        rounded = torch.add(half, x.float(), alpha=1 / scale).to(torch.uint8)  # x + 0.5, truncated, is x rounded
        if HAS_ONEDNN_INT8:
            return multiply_int8(rounded, scale, self.zero, self.packed, self.scales, self.bias, matmul_dtype(x))
        weight = self.packed.float() * self.scales[:, None]
        return F.linear((rounded.float() - self.zero) * scale, weight, self.bias).to(matmul_dtype(x))


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `linear` with oneDNN in float32, without a gradient."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def prepack_int8(rounded: Tensor) -> Tensor:
    """Copy an int8 matrix (outputs, inputs) into oneDNN's memory layout."""
    return torch.ops.onednn.qlinear_prepack(rounded, None)


def multiply_int8(
    x: Tensor, scale: float, zero: int, packed: Tensor, scales: Tensor, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Return scale * (x - zero) times the packed matrix, plus the bias. Row i of the matrix has the scale scales[i]."""
    matrix = packed, scales, torch.zeros(len(scales), dtype=torch.long, device="cpu"), bias
    return torch.ops.onednn.qlinear_pointwise(x, scale, zero, *matrix, 1.0, 0, dtype, "none", [], "")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute x W^T + b with oneDNN: x (R, inputs), weight W (outputs, inputs) -> (R, outputs)."""
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
    """Whether the operator exists in this release of torch, accepts our arguments and returns the expected number."""
    try:
        return operator().item() == expected
    except (AttributeError, RuntimeError, TypeError):
        return False


def _probe() -> tuple[bool, bool]:
    """Test oneDNN's operators in this release of torch. Return (float32 operator works, 8-bit operator works)."""
    if not torch.backends.mkldnn.is_available():
        return False, False
    x, weight, one = (torch.tensor([row], device="cpu", dtype=torch.float32) for row in ((1, 2), (3, 4), (1,)))
    rounded, whole = (x + 64).to(torch.uint8), weight.to(torch.int8)

    def int8() -> Tensor:
        return multiply_int8(rounded, 1.0, 64, prepack_int8(whole), one.flatten(), None, torch.float32)

    return _works(lambda: _onednn(x, weight), 11), _works(int8, 11)


def _is_intel() -> bool:
    cpuinfo = Path("/proc/cpuinfo")  # on Linux, platform.processor() is often empty, but this file exists
    return "GenuineIntel" in (cpuinfo.read_text() if cpuinfo.exists() else platform.processor())


HAS_ONEDNN, HAS_ONEDNN_INT8 = _probe()
USES_ONEDNN = HAS_ONEDNN and not _is_intel()  # only for float32; 8-bit products use oneDNN on all processors


# The rest of this module chooses the device, precision and seed of a run.

PRECISIONS = ("auto", "fp32", "bf16")
INT8 = "int8"  # a precision that only embedding supports
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # constants of malloc.h


# A forked process inherits torch's thread pool, but not the pool's threads, and would wait for them forever.
if sys.platform != "win32":
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def pick_device(name: str | torch.device) -> torch.device:
    """Return the device with this name: "cpu", "cuda", "cuda:1", ... "auto" means a GPU if available, else the CPU.

    Raises UsageError for any other name, and NotFound if this machine does not have the named GPU.
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
    """Use float32 and the CPU as torch's defaults, in a `with` block or in a decorated function."""
    given = torch.get_default_dtype()
    if given is torch.float32 and torch.get_default_device().type == "cpu":
        yield  # not inside `with torch.device`, which would slow down every operation
        return
    torch.set_default_dtype(torch.float32)
    try:
        with torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(given)


def seed_everything(*numbers: int) -> None:
    """Seed torch's random generators on all devices with a seed that depends on all of these non-negative integers."""
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]))


def keep_memory() -> None:
    """Tell glibc to keep freed memory until `release_memory` is called; no effect with other C libraries. Otherwise,
    the system would fill hundreds of megabytes with zeros before each training step (3% of the step's time)."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, size in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_THRESHOLD, 2**25)):  # glibc's largest values
            libc.mallopt(option, size)


def release_memory() -> None:
    """Tell glibc to return freed memory to the system. Without regular calls, batches of different shapes fragment the
    heap: a small training run on a CPU grew from 2 to 6 GB in ten minutes. No effect with other C libraries."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def resolve(device: torch.device, precision: str) -> str:
    """Return the precision to use: for "auto", "bf16" if the device has bf16 instructions, else "fp32"; for "fp32" and
    "bf16", the same name. UsageError for other names."""
    check_choice(PRECISIONS, precision=precision)
    if precision != "auto":
        return precision
    return "bf16" if multiplies_bf16(device) else "fp32"


def multiplies_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for bf16 products."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return cpu_has("amx_bf16", "avx512_bf16")


def cpu_has(*instructions: str) -> bool:
    """Whether torch can use at least one of these AVX-512 or AMX instruction sets, which are named as in torch.

    False if an environment variable limits torch or oneDNN to older instructions."""
    torch_limit, onednn_limit = (os.environ.get(name, "") for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"))
    limited = torch_limit in ("default", "avx2") or re.fullmatch("SSE41|AVX(2.*)?", onednn_limit.upper())
    return not limited and any(torch.cpu.get_capabilities().get(each) for each in instructions)


def warn_if_slow(device: torch.device, precision: str) -> None:
    """Warn if the precision is bf16 and the device only emulates bf16."""
    if precision == "bf16" and not multiplies_bf16(device):
        name = "processor" if device.type == "cpu" else "GPU"
        text = f"this {name} has no bf16 instructions, so bf16 is many times slower than fp32; use precision auto"
        warnings.warn(text, stacklevel=2)


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return a context in which matrix products have this precision; other operations stay in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=resolve(device, precision) == "bf16")
