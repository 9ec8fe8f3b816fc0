"""Read Parquet files, with one kind of error for any damaged file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bgt_core.errors import BgtError, DataError, NotFound


@contextmanager
def reading_parquet(file: Path | str, expected: str = "a Parquet file") -> Iterator[None]:
    """Turn pyarrow's errors on `file` into NotFound if the system can't read it, else into DataError: it is not the
    `expected` file."""
    import pyarrow as pa  # slow to import, and only this format needs it

    try:
        yield
    except BgtError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError,
            NotImplementedError) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno:
            raise NotFound(f"{file}: can't be read ({error.strerror}).") from None
        raise DataError(f"{file}: not {expected}, or damaged ({str(error)[:200]}).") from None
