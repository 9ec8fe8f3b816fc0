"""Parquet from elsewhere: whatever pyarrow makes of a damaged file is one kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bgt_core.errors import BgtError, DataError, NotFound


@contextmanager
def reading_parquet(file: Path | str, expected: str = "a Parquet file") -> Iterator[None]:
    """Turns what pyarrow raises over `file` into NotFound where the system can't read it, else into DataError, which
    says that it is not what was `expected`."""
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
