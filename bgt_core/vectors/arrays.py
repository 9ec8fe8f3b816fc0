"""Read NumPy's .npy files safely: they are checked before their data is used."""

from __future__ import annotations

import warnings
from pathlib import Path
from tokenize import TokenError

import numpy as np

from bgt_core.errors import DataError, NotFound

DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    MemoryError,
    SyntaxError,
    EOFError,
    TokenError,
    NotImplementedError,
    RuntimeError,
)


def read_npy(path: Path) -> np.ndarray:
    """Map the array of a .npy file read-only; nothing is loaded, whatever shape the file claims.

    Raises NotFound if it can't be read; DataError for another kind of file, for arrays of objects, and if the size of
    the file does not match the array.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers written by Python 2
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None
    except DAMAGE as error:
        raise DataError(
            f"{path}: not a .npy file of numbers, or damaged ({' '.join(str(error).split())[:100]})."
        ) from None
    if not isinstance(array, np.memmap) or array.offset + array.nbytes != path.stat().st_size:
        raise DataError(f"{path}: not a .npy file of numbers, or damaged (its size does not match its array).")
    return array
