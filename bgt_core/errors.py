"""The errors that users see, and checks of arguments. The module does not import torch, so that commands start fast.

Each message names the wrong value, the rule, and what the user can do. Commands print the message and exit with the
error's `exit_code`.
"""

import errno
import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral

LONGEST = 1_200  # maximum number of characters of a message; longer messages are shortened
NO_MEMORY = re.compile("can't allocate memory|not enough memory|out ?of ?memory|bad_alloc", re.IGNORECASE)


class BgtError(ValueError):
    """The base class of all errors that this package raises on purpose.

    Args:
        message: The message, without the name of `parameter`, as in "9 must be at least 100".
        parameter: The Python name of the wrong parameter, if any. It is printed before the message. A command prints
            the name of its option instead.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, parameter: str = ""):
        super().__init__(message)
        self.parameter = parameter

    def __str__(self) -> str:
        """Return the message as one line of limited length, without unprintable characters."""
        text = f"{self.parameter} {super().__str__()}"
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 3 :]}"


class UsageError(BgtError):
    """An argument is wrong, such as an unknown name or a number out of range, or contradicts another argument."""

    exit_code = 2


class NotFound(BgtError):
    """Something is missing, such as a file, a device or a library."""

    exit_code = 3


class Busy(BgtError):
    """Another request is using a resource, such as a model, so the user has to try again later."""


class DataError(BgtError):
    """A file or an array has invalid content, such as a damaged checkpoint, text that is not UTF-8, or NaN."""

    exit_code = 4


class OutOfMemory(BgtError):
    """The memory of the machine or of its GPU is too small."""

    exit_code = 6


class Diverged(BgtError):
    """Training diverged: a loss is NaN, infinite or much too high. Earlier checkpoints are kept."""

    exit_code = 8


class Interrupted(BgtError):
    """The user or a signal stopped the work. Finished parts are kept."""

    exit_code = 130


def out_of_memory(error: BaseException) -> bool:
    """Test whether memory ran out. On a CPU, torch raises a plain RuntimeError, so its message must be searched."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(f"{type(error).__name__} {error}"))


def needs(module: str, extra: str) -> None:
    """Raise NotFound if a module is not installed; the message shows the command that installs the extra `extra`."""
    if find_spec(module) is None:
        raise NotFound(f'This needs {module}, which is not installed. Install it with: pip install "bgt[{extra}]"')


def check_least(least: float, **settings: float | None) -> None:
    """Raise UsageError if a setting is a number below `least`; None is allowed."""
    for name, value in settings.items():
        if value is not None and value < least:
            rule = "not be negative" if least == 0 else f"be at least {least}"
            raise UsageError(f"{value} must {rule}", parameter=name)


def check_whole(least: int, **settings: object) -> None:
    """Raise UsageError if a setting is not an integer of at least `least`."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise UsageError(f"{value} must be a whole number of at least {least}", parameter=name)


def check_choice(known: Iterable[str], **settings: str | None) -> None:
    """Raise UsageError if a setting is not one of the `known` words; None is allowed."""
    for name, value in settings.items():
        if value is not None and value not in known:
            hint = did_you_mean(value, known)
            raise UsageError(f"'{value}': choose from {', '.join(known)}.{hint}", parameter=name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the hint " Did you mean 'gender'?" for an unknown word such as "gendr"; "" if no known word is similar."""
    close = get_close_matches(word, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
