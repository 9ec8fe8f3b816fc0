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
                simple = isinstance(part, str | int | float)
                print(f"  {name}: {part if simple else json.dumps(part, ensure_ascii=False)}")
        else:
            print(f"{key}: {value}")
