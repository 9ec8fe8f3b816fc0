"""Convert the output of any encoder or library to NumPy arrays, check their shapes and numbers, and compare vectors."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from bgt_core.errors import BgtError, DataError, NotFound, UsageError

CHECKED = 16_384  # number of rows that are checked at once, because memory-mapped arrays may not fit into memory
BLOCK = 1_024  # number of queries that are compared with all answers at once

# similarities are rounded to this many decimals, because float32 rounding errors reach 2e-7 and depend on the batch
DECIMALS = 6
ROUNDING = 10.0**-DECIMALS  # similarities that differ by less than this count as equal

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (N, D), (M, D) -> (N, M)
REAL = "fiu"  # NumPy's codes for the kinds of dtypes that are floats or integers


def matrix(
    given: object,
    name: str = "vectors",
    *shapes: tuple[int | str, ...],
    texts: Sequence[str] = (),
    first: int = 0,
    dtype: DTypeLike | None = np.float32,
) -> np.ndarray:
    """Convert vectors to an array (N, D) of finite numbers, as `numbers` does. An array of this type is not copied.

    Messages of a DataError contain the `name` of the vectors, and the row of a wrong number with its sentence in
    `texts`. If the vectors are part of a longer array, `first` is the index of their first row in it. With None as
    `dtype`, the numbers keep their type.
    """
    array = numbers(given, name, *shapes)
    check_finite(np.atleast_2d(array), name, texts, first, dtype or np.result_type(array, np.float32))
    return array if dtype is None else array.astype(dtype, copy=False)


def numbers(given: object, name: str, *shapes: tuple[int | str, ...]) -> np.ndarray:
    """Convert real numbers to an array of any real type; an array is not copied.

    `given` is an array, a torch tensor, a sparse SciPy matrix, a pandas frame, or a list, a Series or an iterator of
    such rows. Its shape must be one of `shapes`, by default (N, D), where "N" is any size and "D" any size but 0.
    Raises DataError, which contains the `name` of the numbers, for other types and shapes, and for masked values.
    """
    try:
        array = _array(given, name)
    except BgtError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:  # for example a tensor on torch's meta device
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{name}: {type(given).__name__} is not an array of numbers ({reason}).") from None
    shapes = shapes or (("N", "D"),)
    if array.dtype.kind not in REAL or not any(_fits(array.shape, shape) for shape in shapes):
        kind = f"{array.dtype} {array.shape}" if array.ndim else f"of type {type(given).__name__}"
        expected = " or ".join(str(shape).replace("'", "") for shape in shapes)
        pool = "; pool it to one vector for each sentence" if array.ndim == 3 and array.dtype.kind in REAL else ""
        raise DataError(f"{name}: {kind}; expected numbers, {expected}{pool}.")
    return array


def check_finite(
    array: np.ndarray, name: str, texts: Sequence[str] = (), first: int = 0, dtype: DTypeLike = np.float32
) -> None:
    """Raise DataError if a row of an array (N, D) contains NaN, infinity, or numbers outside the range of `dtype`.

    `texts` and `first` are as in `matrix`.
    """
    limits = np.finfo(dtype)
    for start in range(0, len(array), CHECKED):
        block = array[start : start + CHECKED]
        with np.errstate(over="ignore"):
            good = np.isfinite(block.astype(dtype, copy=False)).all(1)
        if block.dtype.itemsize > limits.dtype.itemsize:
            good &= (np.abs(block).max(1, initial=0) >= limits.tiny) | ~block.any(1)
        if not good.all():
            row = int(good.argmin())
            beyond = f"is beyond {limits.dtype}, {limits.tiny:.1e} to {limits.max:.1e}; scale the vectors"
            problem = beyond if np.isfinite(block[row]).all() else "contains NaN or infinity"
            text = f", for {texts[start + row][:60]!r}" if len(texts) else ""
            raise DataError(f"{name}: row {first + start + row + 1} {problem}{text}.")


def holds_vectors(given: Any) -> bool:
    """Return whether an argument is meant as vectors, even if they are invalid, rather than as sentences."""
    kind = getattr(getattr(given, "dtype", None), "kind", "O")
    if getattr(given, "ndim", 1) > 1 or kind not in "OUST":
        return True
    array = any(hasattr(given, each) for each in ("__array__", "__array_interface__"))
    if not isinstance(given, Iterable) or not (array or isinstance(given, Sequence)):
        return array
    row = next(iter(given), None)
    return hasattr(row, "__len__") and not isinstance(row, str | bytes | Mapping | Set)


def listed(given: Any) -> Any:
    """Convert an iterator to a list, so that it can be read more than once; return all other objects unchanged."""
    return list(given) if isinstance(given, Iterator) else given


def _fits(sizes: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    return len(sizes) == len(shape) and all(
        wanted in (size, "N") or (wanted == "D" and size > 0) for size, wanted in zip(sizes, shape, strict=True)
    )


def _array(given: Any, name: str) -> np.ndarray:
    """Convert an object to an array like `numbers`, but without checks of type and shape."""
    torch, pandas = sys.modules.get("torch"), sys.modules.get("pandas")  # None if not imported
    if torch is not None and isinstance(given, torch.Tensor):
        tensor = given.detach().to_dense().resolve_neg().resolve_conj()
        if tensor.is_floating_point() and tensor.element_size() < 4:  # NumPy lacks bfloat16 and float8
            tensor = tensor.float()
        return tensor.cpu().numpy()
    if hasattr(given, "toarray"):  # a sparse matrix
        return given.toarray()
    if pandas is not None and isinstance(given, pandas.DataFrame):
        real = all(getattr(dtype, "kind", "") in REAL for dtype in given.dtypes)
        return given.to_numpy(np.float64, na_value=np.nan) if real else given.to_numpy()
    if np.ma.is_masked(given):
        raise DataError(f"{name}: has masked values; replace them, or leave their rows out.")
    if isinstance(given, Mapping):
        keys = ", ".join(map(str, list(given)[:5]))
        raise DataError(f"{name}: a {type(given).__name__} with the keys {keys}; expected one of its arrays.")
    if isinstance(given, str | bytes | Set):
        raise DataError(f"{name}: a {type(given).__name__}; expected numbers.")
    if hasattr(given, "__array__") or not isinstance(given, Iterable):
        array = np.asarray(given)
        if array.dtype.kind != "O" or not array.ndim:
            return array
        given = array
    rows = [np.asarray(row) if isinstance(row, list | tuple) else _array(row, name) for row in given]
    rows = [row.ravel() if row.ndim == 2 and len(row) == 1 else row for row in rows]  # a sparse row has shape (1, D)
    for number, row in enumerate(rows, 1):
        if row.shape != rows[0].shape:
            shapes = f"row {number} has shape {row.shape}, row 1 {rows[0].shape}"
            raise DataError(f"{name}: {shapes}; expected rows of one width.")
    return np.stack(rows) if rows else np.empty(0)


# The errors that NumPy raises for a damaged .npy file.
DAMAGE = (ValueError, TypeError, KeyError, OverflowError, MemoryError, SyntaxError, EOFError, TokenError, RuntimeError)


def read_npy(path: Path) -> np.ndarray:
    """Map the array of a .npy file read-only, so that a damaged file with a huge shape does not allocate memory.

    Raises NotFound if the file can't be read, DataError if it is not a .npy file of numbers, or damaged.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # NumPy warns of headers that Python 2 wrote
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None
    except DAMAGE:
        raise DataError(f"{path}: not a .npy file of numbers, or damaged.") from None
    if not isinstance(array, np.memmap) or array.offset + array.nbytes != path.stat().st_size:
        raise DataError(f"{path}: not a .npy file of numbers, or damaged (its size does not match its array).")
    return array


def binary_scaled(vectors: np.ndarray, axis: int | None = -1) -> np.ndarray:
    """Scale each row (..., D) by a power of 2, so that its largest magnitude is from 0.5 to 1, in float32 or float64.

    Squares then neither overflow nor underflow, and no digit changes. With axis=None, all rows get the same factor.
    """
    vectors = vectors.astype(np.result_type(vectors, np.float32), copy=False)
    exponents = np.frexp(np.abs(vectors).max(axis=axis, keepdims=True, initial=0))[1]
    return np.ldexp(vectors, -exponents)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows (N, D) to length 1; a zero row stays zero."""
    scaled = binary_scaled(vectors)
    scaled /= np.maximum(np.linalg.norm(scaled, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    return scaled


def sides(left: object, right: object) -> tuple[np.ndarray, np.ndarray]:
    """Convert `left` and `right` to arrays, each (N, D) or a single vector (D,); UsageError if the widths differ."""
    shapes = ("N", "D"), ("D",)
    left, right = (matrix(side, name, *shapes, dtype=None) for side, name in ((left, "left"), (right, "right")))
    if left.shape[-1] != right.shape[-1]:
        text = f"has vectors of {left.shape[-1]} units, right of {right.shape[-1]}; expected those of one encoder."
        raise UsageError(text, parameter="left")
    return left, right


def paired(left: object, right: object) -> tuple[np.ndarray, np.ndarray]:
    """Convert `left` and `right`, whose rows are compared in pairs, to arrays (N, D); UsageError if shapes differ."""
    left, right = sides(left, right)
    if left.shape != right.shape:
        text = f"has shape {left.shape}, right {right.shape}; expected the same number of vectors."
        raise UsageError(text, parameter="left")
    return left, right


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of row i of left (N, D) and row i of right (N, D), 0 for a zero vector: (N,).

    Raises DataError if an argument does not consist of numbers, UsageError if the shapes differ.
    """
    left, right = paired(left, right)
    return (unit(left) * unit(right)).sum(-1)


def cosine_similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of left (N, D) with each row of right (M, D), 0 for a zero vector: (N, M).

    Raises DataError if an argument does not consist of numbers, UsageError if the widths differ.
    """
    left, right = sides(left, right)
    return unit(left) @ unit(right).T


def nearest(queries: np.ndarray, answers: np.ndarray, similarity: Similarity = cosine_similarity) -> np.ndarray:
    """Return the index of the answer (M, D) most similar to each query (N, D), or of the first if several tie: (N,)."""
    first = [np.zeros(0, dtype=np.intp)]
    for start in range(0, len(queries), BLOCK):
        block = similarity(queries[start : start + BLOCK], answers)
        first.append((block > block.max(1, keepdims=True) - ROUNDING).argmax(1))
    return np.concatenate(first)


def rounded(similarities: np.ndarray) -> np.ndarray:
    """Round similarities to six decimals, so that rounding errors do not decide ranks or comparisons with a threshold.

    Rounding alone would separate close values such as 0.1234564999 and 0.1234565001. So the sorted values are first
    divided into runs, in which neighbouring values differ by less than a millionth, and every value becomes the lowest
    value of its run. A run wider than a millionth is cut every millionth, so that values in a dense range keep their
    order. Takes (N,), returns (N,) float64.
    """
    values, place = np.unique(np.asarray(similarities, np.float64), return_inverse=True)  # in ascending order
    first = np.diff(values, prepend=-np.inf) >= ROUNDING  # True at the first value of each run
    lowest = values[first][first.cumsum() - 1]
    steps = np.floor((values - lowest) / ROUNDING + 1e-3)  # + 1e-3: float errors must not lower rounded values
    return (lowest + ROUNDING * steps).round(DECIMALS)[place]


def above(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Compare two arrays of similarities elementwise: 1 if the first is higher, 0 if lower, 0.5 for a tie, (N,)."""
    gains = np.asarray(first, np.float64) - second
    return np.where(np.abs(gains) < ROUNDING, 0.5, gains > 0)


def hits(similarity: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return 1 for each query whose most similar answer is correct, else 0; 1/k if k answers are equally similar: (N,).

    `similarity` (N, M) compares queries with answers; `own` (N,) is the column of each query's correct answer.
    """
    first = similarity > similarity.max(1, keepdims=True) - ROUNDING
    return first[np.arange(len(own)), own] / first.sum(1)


def found(
    queries: np.ndarray, answers: np.ndarray, own: np.ndarray | None = None, similarity: Similarity = cosine_similarity
) -> np.ndarray:
    """Return `hits` of queries (N, D) among answers (M, D). By default, answer n is the correct one for query n."""
    own = np.arange(len(queries)) if own is None else own
    blocks = [slice(start, start + BLOCK) for start in range(0, len(queries), BLOCK)]
    return np.concatenate([np.zeros(0), *(hits(similarity(queries[rows], answers), own[rows]) for rows in blocks)])
