"""`bgt info` and `bgt export`: describe a checkpoint, or prepare it for others."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
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
        options.print_json("bgt-info/1", facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, part in value.items():
                print(f"  {name}: {on_one_line(part)}")
        else:
            print(f"{key}: {value}")


def on_one_line(value: object) -> object:
    """Format a value on one line; for a table, only its number of rows."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"{len(value)} rows (--json shows them)"
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


class Form(StrEnum):
    """The format of an export, or the hub."""

    CHECKPOINT = "checkpoint"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    ONNX = "onnx"
    HUB = "hub"


def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder, ORG/NAME, or split:FOLDER.")],
    out: Annotated[Path, typer.Option(help="Output folder, which must not exist; or ORG/NAME (hub).")],
    to: Annotated[Form, typer.Option("--to", help="The format; hub uploads the checkpoint.")] = Form.CHECKPOINT,
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits (checkpoint).")] = False,
    figures: Annotated[
        Path | None,
        typer.Option("--card", help="Measured figures and other facts to keep with it, a JSON object (checkpoint)."),
    ] = None,
    latent: Annotated[
        str | None,
        typer.Option(help="Latent: semantic, language, or another of the model (onnx).", show_default="semantic"),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the language latent (onnx), or of a split.", show_default="the model's first"),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private (hub).")] = False,
) -> None:
    """Copy a checkpoint without the optimiser's state, convert it to sentence-transformers or ONNX, or upload it.

    A model on the Hugging Face hub has a card, and opens as `bgt_core.load("ORG/NAME")`.
    """
    from bgt_core.encoders import publish

    if to is Form.HUB:
        print(publish.push(path, str(out), private=private))
        return
    measured = publish.read_figures(figures) if figures else None
    difference = publish.export(path, out, to=to.value, half=half, figures=measured, latent=latent, lang=lang)
    if difference is not None:
        print(f"largest relative difference from the model in double precision: {difference:.1e}", file=sys.stderr)
    print(out)
