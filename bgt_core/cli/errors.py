"""From an error of the library to what a user of a command sees: one line, in flags, and an exit code.

The library names its Python parameters, in backticks anywhere or as a message's first word: "`resamples` 9: expected
100 or more". A command whose parameters have the same names says "--resamples 9: ..." without doing anything; one that
calls them otherwise says so with `in_flags`.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

from bgt_core.errors import BgtError, NotFound

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_NAME = re.compile(r"`(\w+)`|^(\w+)(?= )")


def flags(message: str, names: Mapping[str, str]) -> str:
    """The message with these parameters by other names: {"resamples": "--bootstrap"}."""
    return _NAME.sub(lambda match: names.get(match[1] or match[2], match[0]), message)


@contextmanager
def in_flags(names: Mapping[str, str]) -> Iterator[None]:
    """Errors from inside name parameters in this way."""
    try:
        yield
    except BgtError as error:
        error.args = (flags(str(error), names),)
        raise


class Command(TyperCommand):
    """A command whose errors name its own options and arguments: `app.command(cls=Command)`."""

    def invoke(self, ctx: Any) -> Any:
        names = {param.name: param.metavar if param.param_type_name == "argument" else max(param.opts, key=len)
                 for param in self.params}  # fmt: skip
        with in_flags({name: called for name, called in names.items() if name and called}):
            return super().invoke(ctx)


def run(app: typer.Typer, program: str) -> None:
    """The whole of a program: a foreseeable error is one line on stderr and its exit code."""
    open_streams()
    try:
        app()
    except BgtError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader left, as `head` does
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno not in FULL or error.filename:
            raise
        unwritten(program, error)
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            pass
        except OSError as error:
            unwritten(program, error)


def open_streams() -> None:
    """Let a program print whatever it has to: closed streams lead nowhere, ASCII ones show other letters as escapes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started us, as with >&-
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  as long as the program runs
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def unwritten(program: str, error: OSError) -> NoReturn:
    """Ends the program, whose stdout is full."""
    print(f"{program}: what is printed can't be written ({error.strerror}).", file=sys.stderr, flush=True)
    os._exit(NotFound.exit_code)  # at its usual end Python would try again, and fail with a traceback
