"""`bgt info`: describe a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options


def info(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint or run folder, or ORG/NAME.", show_default="the model that ships")
    ] = PRETRAINED,
    as_json: options.JsonOption = False,
) -> None:
    """Describe a checkpoint, and check its hashes."""
    from bgt_core import checkpoint

    facts = checkpoint.info(path)
    if as_json:
        print(json.dumps({"schema": "bgt-info/1", **facts}, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, part in value.items():
                print(f"  {name}: {shown(part)}")
        else:
            print(f"{key}: {value}")


def shown(value: object) -> object:
    """A value on one line; of a table only its size."""
    match value:
        case [dict(), *_]:
            return f"{len(value)} rows (--json shows them)"
        case str() | int() | float():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)
