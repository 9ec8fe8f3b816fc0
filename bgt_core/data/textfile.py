"""Any text file, line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from bgt_core.data.parallel import lines
from bgt_core.errors import DataError


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a UTF-8 file, plain, .gz, .xz or .zst, or of stdin, "-"; numbered from 1, without line
    ends and without a byte order mark.

    Raises DataError with file and line for text that is not UTF-8, and otherwise as `lines` does.
    """
    stdin = (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer) if str(path) == "-" else None
    for number, line in enumerate(stdin or lines(path), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number}: not UTF-8; convert the file to UTF-8.") from None
        yield number, text
