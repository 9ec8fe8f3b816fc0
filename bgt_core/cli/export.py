"""`bgt export` and `bgt push`: a checkpoint goes where others use it."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.errors import DataError, NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.checkpoint import Checkpoint


class Form(StrEnum):
    """What an exported folder is made for."""

    CHECKPOINT = "checkpoint"
    SENTENCE_TRANSFORMERS = "sentence-transformers"
    ONNX = "onnx"


def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder, or ORG/NAME.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    to: Annotated[Form, typer.Option("--to", help="What reads the folder.")] = Form.CHECKPOINT,
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits (checkpoint).")] = False,
    card: Annotated[
        Path | None,
        typer.Option(help="Measured figures to keep with it, as `python -m probes.cli.card` prints (checkpoint)."),
    ] = None,
    latent: Annotated[str | None, typer.Option(help="semantic or language (onnx).", show_default="semantic")] = None,
    lang: Annotated[
        str | None, typer.Option(help="Whose language latent (onnx).", show_default="the first language")
    ] = None,
) -> None:
    """Copy a checkpoint for use: without the optimiser's state, or as sentence-transformers or ONNX read it."""
    from bgt_core import checkpoint
    from bgt_core.checkpoint import hub

    if (half or card) and to != Form.CHECKPOINT:
        raise UsageError("--half and --card are of a checkpoint: export one first, then that one --to another form.")
    if (latent or lang) and to != Form.ONNX:
        raise UsageError("--latent and --lang choose the one encoder of --to onnx; other forms hold all of them.")
    found = checkpoint.load(hub.folder(path))
    if to == Form.ONNX:
        from bgt_core.adapters import onnx

        worst = onnx.export(found, out, latent=latent or "semantic", lang=lang)
        print(f"largest difference to torch: {worst:.1e}", file=sys.stderr)
    elif to == Form.SENTENCE_TRANSFORMERS:
        from bgt_core.errors import needs

        needs("sentence_transformers", "sentence-transformers")
        from bgt_core.adapters import sentence_transformers

        sentence_transformers.export(found, out)
    else:
        copy(found, out, half, card)
    print(out)


def copy(found: Checkpoint, out: Path, half: bool, card: Path | None) -> None:
    """A checkpoint without what only training needs."""
    import torch

    from bgt_core import checkpoint

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


def push(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder.")],
    name: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="The repository on the hub; made if it is not there.")
    ],
    private: Annotated[bool, typer.Option("--private", help="A new repository is for its owners only.")] = False,
) -> None:
    """Put a checkpoint on the Hugging Face hub, with a card of its own figures, for `bgt_core.load("ORG/NAME")`."""
    from bgt_core import checkpoint
    from bgt_core.adapters.modelcard import model_card
    from bgt_core.checkpoint import hub

    found = checkpoint.load(path)
    if checkpoint.OPTIMIZER in found.config["files"]:
        raise UsageError(f"{found.folder}: holds a training state; push a copy for use: bgt export {path} --out DIR")
    use = f'import bgt_core\n\nbgt = bgt_core.load("{name}")\n'
    use += f'vectors = bgt.embed(["..."], lang="{found.recipe.reads[0]}")'
    files: dict[str, Path | bytes] = {file: found.folder / file for file in (checkpoint.CONFIG, *found.config["files"])}
    print(hub.push(name, {**files, "README.md": model_card(name, found, use).encode()}, private=private))


def read_card(path: Path) -> dict[str, object]:
    """The measured figures of a model card."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotFound(f"{path}: no readable JSON ({error}).") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object of figures.")
    return found
