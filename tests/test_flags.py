"""What the library says of its parameters, commands say of their flags."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer

from bgt_core.cli.errors import Command, flags, in_flags, run
from bgt_core.errors import UsageError


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("`resamples` 9: expected 100 or more.", "--bootstrap 9: expected 100 or more."),
        ("resamples 9: expected 100 or more.", "--bootstrap 9: expected 100 or more."),
        ("Give `langs` or `resamples`.", "Give `langs` or --bootstrap."),
        ("resamples: a file of that name.", "resamples: a file of that name."),
        ("The resamples are too few.", "The resamples are too few."),
    ],
)
def test_parameters_become_flags(message: str, expected: str) -> None:
    assert flags(message, {"resamples": "--bootstrap"}) == expected


def test_a_command_names_its_own_options(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command(cls=Command)
    def command(
        source: Annotated[str, typer.Argument(metavar="IN")],
        level: Annotated[float, typer.Option("-l", "--confidence")] = 0.95,
        max_items: int = 3,
    ) -> None:
        with in_flags({"seed": "--first-seed"}):
            raise UsageError("`level`, `max_items`, `seed` and `source` don't agree; see `size`.")

    monkeypatch.setattr("sys.argv", ["program", "x"])
    with pytest.raises(SystemExit) as end:
        run(app, "program")
    assert end.value.code == 2
    expected = "program: --confidence, --max-items, --first-seed and IN don't agree; see `size`.\n"
    assert capsys.readouterr().err == expected
