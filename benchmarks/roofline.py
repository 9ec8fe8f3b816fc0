"""How far each operator is from what this machine allows: a roofline (Williams et al. 2009), call by call.

The floor of a call is the longer of two times: that of its multiplications and additions at the rate of the fastest
product of their dtype, and that of the bytes it must read and write at the rate of the fastest pass over as many, which
few bytes make in a cache. Sums of other kinds, exponentials and random numbers count as passes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.measure import clock_of, product_rate

# products, and which argument is the left factor
LEFT = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "_linear_pointwise": 0, "qlinear_pointwise": 0}
INDEXED = ("index", "index_select", "gather", "embedding", "index_add_", "index_copy_", "index_put_", "scatter_add_")
OVERWRITE = ("copy_", "fill_", "zero_", "random_", "uniform_", "normal_", "bernoulli_")
PASSES = range(14, 29)  # powers of two, bytes: from 16 KiB, where the call itself takes longest, to 256 MiB


class Call(NamedTuple):
    """One call of an operator."""

    name: str  # "mm"
    seconds: float
    operations: int  # operations of a matrix product, else 0
    dtype: torch.dtype | None  # dtype of a product's factors
    traffic: int  # bytes that it must read and write

    @property
    def floor(self) -> float:
        """Seconds."""
        passes = self.traffic / bandwidth(max(self.traffic - 1, 1).bit_length(), torch.get_num_threads())
        return passes if self.dtype is None else max(passes, self.operations / rate(self.dtype))


class Recorder(TorchDispatchMode):
    """Keeps each call of an operator while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.clock = clock_of(torch.get_num_threads())

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        with self:  # without a gradient, operators made of others come whole
            if (parts := func.decompose(*args, **kwargs)) is not NotImplemented:
                return parts
        begun = self.clock()
        result = func(*args, **kwargs)
        spent = self.clock() - begun
        name, operations, dtype = func._schema.name.split("::")[1], 0, None
        if (left := LEFT.get(name.removesuffix("_"))) is not None:
            operations, dtype = 2 * result.numel() * args[left].shape[-1], args[left].dtype
        self.calls.append(Call(name, spent, operations, dtype, traffic_of(func, name, args, kwargs, result)))
        return result


def profile(work: Callable[[], object], most: int = 6) -> str:
    """Where the time of one call goes: the operators with the largest share, and what share of it is their floor:
    "mm 61% (at 90% of its floor), copy_ 14% (at 40%); all operators at 70%"."""
    with Recorder() as seen:
        work()
    spent, floors = Counter[str](), Counter[str]()
    for call in seen.calls:
        spent[call.name] += call.seconds
        floors[call.name] += call.floor
    of = " of its floor"
    parts = []
    for name, seconds in spent.most_common(most):
        parts.append(f"{name} {100 * seconds / spent.total():.0f}% (at {100 * floors[name] / seconds:.0f}%{of})")
        of = ""
    return f"{', '.join(parts)}; all operators at {100 * floors.total() / spent.total():.0f}%"


def traffic_of(func: Any, name: str, args: tuple, kwargs: dict, result: Any) -> int:
    """Bytes that a call must read and write. A view moves none. Reading or writing rows of a table counts those rows
    only; overwriting does not count the old content."""
    changed: list[Tensor] = []
    read: list[Tensor] = []
    made: list[Tensor] = []
    for argument, value in arguments_of(func, args, kwargs):
        tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
        if argument.is_out:
            made += tensors
        elif argument.alias_info is not None and argument.alias_info.is_write:
            changed += tensors
            read += [] if name in OVERWRITE else tensors
        else:
            read += tensors
    old = {address(tensor) for tensor in (*read, *changed, *made)}
    made += [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and address(leaf) not in old]
    if (not made and not changed) or "empty" in name:
        return 0
    if name.startswith("new_") or name.endswith("_like"):  # shape and dtype of an existing tensor
        read = []
    sizes = [sum(map(size, part)) for part in (read, changed, made)]
    if name in INDEXED:
        table, *others = map(size, read)
        moved = sizes[2] or others[-1]  # the rows picked, or those added
        sizes[0] -= max(0, table - moved)
        sizes[1] = min(sizes[1], moved)
    return sum(sizes)


def arguments_of(func: Any, args: tuple, kwargs: dict) -> Iterator[tuple[Any, Any]]:
    """Those given, as the operator declares them, and their values."""
    for place, argument in enumerate(func._schema.arguments):
        if place < len(args):
            yield argument, args[place]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def size(tensor: Tensor) -> int:
    """Bytes of its elements, of one that is repeated once."""
    full = tensor.numel() * tensor.itemsize
    return full if tensor.is_mkldnn else min(full, tensor.untyped_storage().nbytes())


def address(tensor: Tensor) -> int:
    """Of its memory; of oneDNN's own form, which has none to show, another number each time."""
    return id(tensor) if tensor.is_mkldnn else tensor.untyped_storage().data_ptr()


@cache
def rate(dtype: torch.dtype) -> float:
    """Operations per second of a product of this dtype."""
    return product_rate(torch.int8 if dtype == torch.uint8 else dtype, torch.get_num_threads())


@cache
def bandwidth(power: int, threads: int) -> float:
    """Bytes read and written per second, 2^power of them at a time, by multiplying an array in place; the best of 5."""
    if power not in PASSES:
        return bandwidth(min(max(power, PASSES[0]), PASSES[-1]), threads)
    clock, array, best = clock_of(threads), torch.ones(2**power // 8), math.inf
    repeat = max(1, 2**25 >> power)
    for _ in range(6):
        begun = clock()
        for _ in range(repeat):
            array.mul_(1.0)
        best = min(best, (clock() - begun) / repeat)
    return 2**power / best
