"""Print an error as one line for the user of a command, and exit with the code of the error.

If an error of the library names a Python parameter, the name of the command's option is printed instead. Errors of
typer's parser, such as an unknown option, are printed in the same way.
"""

import errno
import glob
import os
import sys
import warnings
from collections.abc import Mapping
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

from bgt_core.data.columns import canonical_column, is_file, lang_codes
from bgt_core.errors import BgtError, Interrupted, NotFound, OutOfMemory, UsageError, check_least, out_of_memory

LANGS = {"lang", "langs", "columns", "source_lang", "into", "of"}  # parameters whose values are languages
OUTPUTS = ("out", "items", "work")  # parameters that name output files or folders
# parameters whose paths are not checked here: they may be names on the hub, or the command checks them itself
UNCHECKED = ("model", "path", "store", "classifier")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
ParserError: Any = typer.BadParameter.__base__  # click's UsageError; the module that has it depends on typer's version


def spelling(option: Any) -> str:
    """Return the name of an option or argument as in the command's help, such as "--model" or "FILE"."""
    name = (option.metavar or option.name.upper()).strip("[].")
    return name if option.param_type_name == "argument" else max(option.opts, key=len)


def name_option(error: BgtError, command: Any) -> BgtError:
    """Replace the name of the parameter in an error by the name of the command's option or argument."""
    names = {option.name for option in command.params}
    if error.parameter not in names and f"{error.parameter}s" in names:  # "lang" stands for the option "langs"
        error.parameter += "s"
    for option in command.params:
        spelled = f"--{error.parameter.replace('_', '-')}" in option.opts
        if error.parameter and (spelled or option.name == error.parameter):
            error.parameter = spelling(option)
            break
    return error


def from_parser(error: Any) -> UsageError:
    """Turn an error of typer's parser into a UsageError of one line."""
    option = getattr(error, "param", None)
    text = f"{spelling(option)}: {error.message or 'missing'}" if option else error.format_message()
    return UsageError(f"{text.rstrip('.')}. See {error.ctx.command_path} --help.")


class Command(TyperCommand):
    """The class of all commands (`app.command(cls=Command)`). It checks paths first, and names options in errors."""

    def invoke(self, ctx: Any) -> Any:
        try:
            spell_langs(ctx.params)
            check_least(0, **{name: ctx.params.get(name) for name in ("seed", "corrections")})
            outputs = check_paths(ctx.params)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as error:
                changed = [path for path, before in outputs.items() if modified(path) != before]
                left = f"; {changed[0]} may be incomplete" if changed else "; nothing was written" if outputs else ""
                raise Interrupted(note_of(error) or f"Stopped{left}.") from None
        except BgtError as error:
            name_option(error, self)
            raise
        except (MemoryError, RuntimeError, OSError) as error:
            if not out_of_memory(error):
                raise
            way_out = note_of(error) or "use less text at once, shorter sentences or a smaller model"
            raise OutOfMemory(f"out of memory: {way_out}.") from error


def spell_langs(given: dict[str, Any]) -> None:
    """Replace each language in a command's arguments by its code (`lang_code`): EN, eng and eng_Latn become en."""
    for name in LANGS & given.keys():
        value = given[name]
        if isinstance(value, list):  # an option for a list of languages (fr,en) or language pairs (en-fr)
            given[name] = [",".join(lang_codes(part.strip()) for part in each.split(",")) for each in value]
        elif isinstance(value, str) and not (
            name == "langs" and "," not in value
        ):  # the command itself rejects `--langs en-fr`
            if not value.strip():
                raise UsageError("'': expected a language code, as in en.", parameter=name)
            given[name] = ",".join(map(canonical_column, value.split(",")))


def check_paths(given: Mapping[str, object]) -> dict[Path, int]:
    """Check that a command's inputs exist and its outputs can be written, before it loads a model; else raise NotFound.
    The input X may stand for the files X.en and X.fr. Return {output path: time of its last change}."""
    outputs: dict[Path, int] = {}
    for name, value in given.items():
        for path in value if isinstance(value, list | tuple) else [value]:
            built = name == "store" and given.get("source")
            if not isinstance(path, Path) or str(path) == "-" or (name in UNCHECKED and not built):
                continue
            if name in OUTPUTS or built:
                outputs[path] = modified(path)
                folder = next(each for each in path.absolute().parents if is_file(str(each)))
                if not folder.is_dir() or not os.access(folder, os.W_OK):
                    raise NotFound(f"{path}: can't be written: {folder} is not a writable folder.", parameter=name)
            elif not is_file(str(path)) and not any(path.parent.glob(f"{glob.escape(path.name)}.*")):
                raise NotFound(f"{path}: no such file or folder.", parameter=name)
    return outputs


def modified(path: Path) -> int:
    """Return the time, in nanoseconds, when a file or folder was last changed; 0 if it does not exist."""
    return path.stat().st_mtime_ns if is_file(str(path)) else 0


def note_of(error: BaseException) -> str:
    """Return the last note that was added to an exception, which advises the user; "" if it has no notes."""
    return next(iter(getattr(error, "__notes__", [])[::-1]), "")


def run(app: typer.Typer, program: str) -> None:
    """Run a program; print an expected error in one line on stderr and exit with its code."""
    open_streams()
    warnings.showwarning = partial(show_warning, program)
    try:
        code = app(standalone_mode=False)
        if code == Interrupted.exit_code:  # typer returns this code, and prints nothing, if no command was running
            raise Interrupted("Stopped; nothing was written.")
        sys.exit(code)
    except BgtError as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except ParserError as error:
        if error.format_message():  # the message is empty if only the help was printed
            print(f"{program}: {from_parser(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        print(f"{program}: aborted.", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
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


def show_warning(program: str, message: Warning | str, *_: object) -> None:
    """Print a warning in one line, without the line of code that issued it."""
    print(f"{program}: {' '.join(str(message).split())}", file=sys.stderr)


def open_streams() -> None:
    """Replace closed standard streams by the null device, and let streams escape characters that they can't encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # the caller has closed the stream, as with >&-
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  open until the program ends
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def unwritten(program: str, error: OSError) -> NoReturn:
    """End the program because stdout can't be written."""
    print(f"{program}: the output can't be written ({error.strerror}).", file=sys.stderr, flush=True)
    os._exit(NotFound.exit_code)  # a normal exit would try to write again, and fail with a traceback
