"""`bgt embed`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError


def embed(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="One sentence per line (.gz, .xz, .zst too); - reads stdin.")
    ],
    out: Annotated[Path, typer.Option(help="Output file, .npy or .safetensors.")],
    lang: options.LangOption = "en",
    latent: Annotated[str, typer.Option(help="Latent: semantic, language, or another of the model.")] = "semantic",
    model: options.EncoderOption = str(PRETRAINED),
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    shard: options.ShardOption = None,
) -> None:
    """Embed sentences: one row per line, in order. Complete output files are not made again; split long work into
    several with --shard."""
    from bgt_core.bulk import check, embed_file

    numbers = parse_shard(shard) if shard else None
    check(out)  # before the encoder opens
    encoder = options.open_encoder(model, device, precision)
    with options.rows_bar(out.name) as report:
        written = embed_file(encoder, source, out, lang=lang, latent=latent, shard=numbers, report=report)
    options.note_unread(getattr(encoder, "unread", 0), getattr(encoder, "read", 0))
    print(f"{written.path}: {written.rows} x {written.width} float32, {latent} latent", file=sys.stderr)


def parse_shard(text: str) -> tuple[int, int]:
    """Parse "2/4" as (2, 4)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match:
        raise UsageError(f"{text}: expected I/N, as in 2/4.", parameter="shard")
    return int(match[1]), int(match[2])
