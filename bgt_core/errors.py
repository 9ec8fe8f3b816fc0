"""The errors that users see. This module does not import torch, so that commands start fast.

Each message names the value, the rule and the way out. Commands print it and exit with the error's `exit_code`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral

LONGEST = 1_200  # characters of a message
NO_MEMORY = re.compile("can't allocate memory|not enough memory|out ?of ?memory|bad_alloc", re.IGNORECASE)


class BgtError(ValueError):
    """The base class of all errors that this package raises on purpose.

    Args:
        message: The whole sentence, or with `parameter` its continuation: "9: expected 100 or more."
        parameter: The parameter that is wrong, by its Python name; it begins the sentence. Commands put the name of
            their option in its place.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, parameter: str = ""):
        super().__init__(message)
        self.parameter = parameter

    def __str__(self) -> str:
        """The message in one line of limited length, whatever a file or a user put into it."""
        text = f"{self.parameter} {super().__str__()}"
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 3 :]}"


class UsageError(BgtError):
    """An argument is wrong, alone or combined with another: an unknown name, a number out of range."""

    exit_code = 2


class NotFound(BgtError):
    """Something required is absent: a file, a device, a library."""

    exit_code = 3


class Busy(BgtError):
    """Another request is using the resource; try again in a moment."""


class DataError(BgtError):
    """A file or an array has invalid content: a damaged checkpoint, text that is not UTF-8, NaN."""

    exit_code = 4


class OutOfMemory(BgtError):
    """The memory of this machine, or of its GPU, is too small for the work."""

    exit_code = 6


class Diverged(BgtError):
    """Training diverged: a loss is NaN or infinite, or exploded; earlier checkpoints are kept."""

    exit_code = 8


class Interrupted(BgtError):
    """The user, or a signal, stopped the work; finished parts are kept."""

    exit_code = 130


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch raises its own error on a GPU, and a plain RuntimeError on a CPU."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(f"{type(error).__name__} {error}"))


def needs(module: str, extra: str) -> None:
    """Raise NotFound, with the command that installs `module`, if it is absent."""
    if find_spec(module) is None:
        raise NotFound(f'This needs {module}, which is not installed: pip install "bgt[{extra}]"')


def check_least(least: float, **settings: float | None) -> None:
    """Raise UsageError for a setting below `least`; None passes."""
    for name, value in settings.items():
        if value is not None and value < least:
            rule = "not be negative" if least == 0 else f"be at least {least}"
            raise UsageError(f"{value} must {rule}", parameter=name)


def check_whole(least: int, **settings: object) -> None:
    """Raise UsageError for a setting that is not a whole number of `least` or more."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise UsageError(f"{value} must be at least {least}, a whole number", parameter=name)


def check_choice(known: Iterable[str], **settings: str | None) -> None:
    """Raise UsageError for a setting that is not one of the `known` words; None passes."""
    for name, value in settings.items():
        if value is not None and value not in known:
            hint = did_you_mean(value, known)
            raise UsageError(f"'{value}': choose from {', '.join(known)}.{hint}", parameter=name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for the end of a message about an unknown word, as in " Did you mean 'gender'?"; "" if no word is
    close."""
    close = get_close_matches(word, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
