"""`--help` shows the text as it was written: rich interprets [words] in square brackets as markup, and drops them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.text import Text

from bgt_core.cli import program as bgt
from probes.cli import app as probe


def texts(command: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of a command, its parameters and its subcommands."""
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for sub in getattr(command, "commands", {}).values():
        yield from texts(sub, f"{name} {sub.name}")


@pytest.mark.parametrize("app", [bgt, probe], ids=["bgt", "bgt-probe"])
def test_nothing_in_square_brackets_is_lost(app: typer.Typer) -> None:
    every = dict(texts(typer.main.get_command(app), "bgt"))
    assert len(every) > 20
    lost = {where: text for where, text in every.items() if Text.from_markup(text).plain != text.replace("\\[", "[")}
    assert not lost, r"write \\[ for a square bracket"
