"""`bgt export` and `bgt push`: publish a checkpoint, or convert it for other programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Form(StrEnum):
    """The program that an exported folder is for."""

    CHECKPOINT = "checkpoint"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    ONNX = "onnx"


def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder, ORG/NAME, or split:FOLDER.")],
    out: Annotated[Path, typer.Option(help="Output folder; must not exist.")],
    to: Annotated[Form, typer.Option("--to", help="The format of the folder.")] = Form.CHECKPOINT,
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits (checkpoint).")] = False,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--card", help="Measured figures to keep with it, as `python -m probes.cli.card` prints (checkpoint)."
        ),
    ] = None,
    latent: Annotated[
        str | None,
        typer.Option(help="Latent: semantic, language, or another of the model (onnx).", show_default="semantic"),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the language latent (onnx), or of a split.", show_default="the model's first"),
    ] = None,
) -> None:
    """Copy a checkpoint without the optimiser's state, or convert it to sentence-transformers or ONNX."""
    from bgt_core.encoders import publish

    measured = publish.read_figures(figures) if figures else None
    difference = publish.export(path, out, to=to.value, half=half, figures=measured, latent=latent, lang=lang)
    if difference is not None:
        print(f"largest relative difference from the model in double precision: {difference:.1e}", file=sys.stderr)
    print(out)


def push(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder.")],
    name: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="The repository on the hub; created unless it exists.")
    ],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Upload a checkpoint with its model card to the Hugging Face hub, for `bgt_core.load("ORG/NAME")`."""
    from bgt_core.encoders import publish

    print(publish.push(path, name, private=private))
