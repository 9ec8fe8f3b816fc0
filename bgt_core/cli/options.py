"""What several commands ask for, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bgt_core.embedder import Embedder

ModelOption = Annotated[
    Path, typer.Option("--model", help="A checkpoint or run folder.", show_default="the model that ships")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, auto (bf16 where the device has it); int8 on a CPU.")]
LangOption = Annotated[str, typer.Option(help="Language of the sentences.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def load(model: Path, device: str, precision: str = "auto") -> Embedder:
    import bgt_core

    return bgt_core.load(model, device, precision)
