"""`bgt info` and `bgt export`: what is done with a checkpoint as it lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import JsonOption
from bgt_core.errors import BadInput


def info(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint or run folder.", show_default="the model that ships")
    ] = PRETRAINED,
    as_json: JsonOption = False,
) -> None:
    """Say what a checkpoint is, and check its hashes."""
    from bgt_core import checkpoint

    found = checkpoint.info(path)
    if as_json:
        print(json.dumps({"schema": "bgt-info/1", **found}, indent=2, ensure_ascii=False))
        return
    for key, value in found.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, part in value.items():
                print(
                    f"  {name}: {part if isinstance(part, str | int | float) else json.dumps(part, ensure_ascii=False)}"
                )
        else:
            print(f"{key}: {value}")


def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits.")] = False,
    card: Annotated[
        Path | None, typer.Option(help="Measured figures to keep with it, as `python -m probes.card` prints.")
    ] = None,
) -> None:
    """Copy a checkpoint for use: without the optimiser's state, in half the bytes if asked."""
    import torch

    from bgt_core import checkpoint

    found = checkpoint.load(path)
    rows = found.folder.parent / checkpoint.METRICS
    checkpoint.save(
        out,
        found.recipe,
        found.model,
        found.tokenizer,
        found.config["step"],
        dtype=torch.float16 if half else torch.float32,
        metrics=rows.read_bytes() if rows.is_file() else b"",
        card=read_card(card) if card else None,
    )
    print(out)


def read_card(path: Path) -> dict[str, object]:
    """The measured figures of a model card."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: no readable JSON ({error}).", 3) from None
    if not isinstance(found, dict):
        raise BadInput(f"{path}: expected a JSON object of figures.")
    return found
