"""What several commands ask for, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bgt_core.contracts import Embeds
    from bgt_core.embedder import Embedder

ModelOption = Annotated[
    Path,
    typer.Option("--model", help="A checkpoint or run folder, or ORG/NAME.", show_default="the model that ships"),
]
EncoderOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="A checkpoint or run folder, ORG/NAME, sentence-transformers:NAME, python:MODULE:OBJECT, vectors:FILE, "
        "or baseline:words|tfidf|random.",
        show_default="the model that ships",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, auto (bf16 where the device has it); int8 on a CPU.")]
LangOption = Annotated[str, typer.Option(help="Language of the sentences.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def load(model: Path, device: str, precision: str = "auto") -> Embedder:
    import bgt_core

    return bgt_core.load(model, device, precision)


def open_encoder(spec: str, device: str, precision: str = "auto") -> Embeds:
    from bgt_core import adapters

    return adapters.open_encoder(spec, device=device, precision=precision)
