"""From an error of the library to one line for the user of a command, and an exit code.

An error may carry the Python parameter that is wrong (`BgtError.parameter`). Commands give their options' variables the
names of the library's parameters, so that `resamples` becomes "--resamples" without a table of names.
"""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from bgt_core.errors import BgtError, NotFound

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def name_option(error: BgtError, command: Any) -> BgtError:
    """Let an error name an option or argument of this command in place of a parameter."""
    for option in command.params:
        spelled = f"--{error.parameter.replace('_', '-')}" in option.opts
        if error.parameter and (spelled or option.name == error.parameter):
            argument = (option.metavar or error.parameter.upper()).strip("[].")
            error.parameter = argument if option.param_type_name == "argument" else max(option.opts, key=len)
            break
    return error


class Command(TyperCommand):
    """A command whose errors name its own options and arguments: `app.command(cls=Command)`."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BgtError as error:
            name_option(error, self)
            raise


class Group(TyperGroup):
    """A group with options of its own, named by its errors: `typer.Typer(cls=Group)`."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BgtError as error:
            name_option(error, self)
            raise


def run(app: typer.Typer, program: str) -> None:
    """Run a program; print an expected error in one line on stderr and exit with its code."""
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
    """End the program, whose stdout is full."""
    print(f"{program}: the output can't be written ({error.strerror}).", file=sys.stderr, flush=True)
    os._exit(NotFound.exit_code)  # at its usual end Python would try again, and fail with a traceback
