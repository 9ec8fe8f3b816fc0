"""The command line prints an error as one line, which names the option or argument of the command."""

import errno
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
import typer

from bgt_core.__main__ import main
from bgt_core.cli import evaluate
from bgt_core.cli import program as bgt
from bgt_core.cli.errors import Command, run
from bgt_core.cli.options import SeedOption
from bgt_core.errors import UsageError
from probes.cli import app as bgt_probe

group = typer.Typer()


@group.command(cls=Command)
def command(
    parameter: str,
    source: Annotated[str, typer.Argument(metavar="[IN...]")] = "",
    level: Annotated[float, typer.Option("-l", "--confidence")] = 0.95,
    seed: SeedOption = 0,
    max_items: int = 3,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    raise UsageError("9: expected less", parameter=parameter)


@pytest.fixture
def said_by(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """said_by(arguments): run the test program `group`, defined in this file; return its exit code and stderr."""

    def call(arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["program", *arguments.split()])
        with pytest.raises(SystemExit) as end:
            run(group, "program")
        return end.value.code, capsys.readouterr().err  # type: ignore[return-value]

    return call


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ("command level", "--confidence 9: expected less\n"),
        ("command max_items", "--max-items 9: expected less\n"),
        ("command json", "--json 9: expected less\n"),
        ("command source", "IN 9: expected less\n"),
        ("command parameter", "PARAMETER 9: expected less\n"),
        ("command elsewhere", "elsewhere 9: expected less\n"),
        ("command level --seed -1", "--seed -1 must not be negative\n"),
        ("command level -l high", "--confidence: "),  # typer's parser raises this error
        ("command level --nothing", "No such option: --nothing"),
        ("command", "PARAMETER: missing"),
        ("nothing", "No such command 'nothing'"),
    ],
)
def test_an_error_is_one_line_with_the_option_of_the_command(
    said_by: Callable[[str], tuple[int, str]], arguments: str, start: str
) -> None:
    code, err = said_by(arguments)
    assert code == 2 and err.startswith(f"program: {start}") and err.count("\n") == 1
    assert err.endswith(" --help.\n") or start.endswith("\n")  # errors of typer's parser refer to --help at the end


@group.command(cls=Command)
def fail(number: int) -> None:
    raise FAILURES[number]


FAILURES = [
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((2**40,), np.dtype("f4")),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("std::bad_alloc"),
]


@pytest.mark.parametrize("number", range(len(FAILURES)))
def test_too_little_memory_is_one_line_and_a_code(said_by: Callable[[str], tuple[int, str]], number: int) -> None:
    code, err = said_by(f"fail {number}")
    assert code == 6 and err.startswith("program: out of memory: ") and err.count("\n") == 1


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(said_by: Callable[[str], tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Command, "invoke", lambda *_: warnings.warn("slow:\n  use another", stacklevel=1))
    assert said_by("fail 0")[1] == "program: slow: use another\n"


@pytest.mark.parametrize("program", [bgt, bgt_probe])
def test_every_command_is_of_this_class(program: typer.Typer) -> None:
    def commands(command: Any) -> Iterator[Any]:
        names = command.list_commands(None) if hasattr(command, "list_commands") else []
        yield from (
            [command] if not names else chain.from_iterable(commands(command.get_command(None, n)) for n in names)
        )

    assert all(isinstance(each, Command) for each in commands(typer.main.get_command(program)))


def test_an_interruption_before_a_command_is_one_line(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "slow_to_import.py").write_text("exec('raise KeyboardInterrupt')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(evaluate.Tasks, "get_command", stop)
    monkeypatch.setattr("sys.argv", ["bgt", "evaluate", "sts"])
    for start in (lambda: main("slow_to_import"), lambda: run(bgt, "bgt")):
        with pytest.raises(SystemExit) as end:
            start()
        assert end.value.code == 130
        assert capsys.readouterr().err == "bgt: Stopped; nothing was written.\n"
