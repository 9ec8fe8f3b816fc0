"""NumPy's .npy files from elsewhere: read only once they are known to hold what they say."""

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
    """The array of a .npy file, mapped read-only: nothing is loaded, whatever shape the file claims.

    Raises NotFound where it can't be read; DataError for another kind of file, for objects, and where the size of
    the file is not that of the array.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of headers as Python 2 wrote them
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None
    except DAMAGE as error:
        raise DataError(
            f"{path}: not a .npy file of numbers, or damaged ({' '.join(str(error).split())[:100]})."
        ) from None
    if not isinstance(array, np.memmap) or array.offset + array.nbytes != path.stat().st_size:
        raise DataError(f"{path}: not a .npy file of numbers, or damaged (its size is not that of its array).")
    return array
