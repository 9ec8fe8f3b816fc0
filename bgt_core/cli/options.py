"""Options that several commands share, and functions that read and check them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgt_core.encoders import KINDS
from bgt_core.errors import NotFound

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder

ModelOption = Annotated[
    Path,
    typer.Option(
        "--model",
        help="A checkpoint or run folder, bgt-en-fr, bgt-multilingual, or ORG/NAME.",
        show_default="the model that ships",
    ),
]
ENCODER = f"A checkpoint or run folder, ORG/NAME, {', '.join(f'{name}:{kind.form}' for name, kind in KINDS.items())}"
EncoderOption = Annotated[str, typer.Option("--model", help=f"{ENCODER}.", show_default="the model that ships")]
EncodersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help=f"{ENCODER}; repeat it to compare several, and write NAME=SPEC to name one.",
        show_default="the model that ships",
    ),
]
ResamplesOption = Annotated[int, typer.Option("--resamples", help="Number of bootstrap resamples.")]
LevelOption = Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop on the first bad line instead of skipping it.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
PrecisionOption = Annotated[
    str, typer.Option(help="fp32, bf16, auto (bf16 if the device supports it), or int8 on a CPU.")
]
BeamOption = Annotated[int, typer.Option("--beam", help="Beam size; 1 is greedy search.")]
ShardOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Part I of N only, written as OUT-0000I-of-0000N; the parts can be joined."),
]
LangOption = Annotated[str, typer.Option(help="Language of the sentences.")]
DistanceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--distance",
        help="How our models compare sentences: cosine, euclidean, w2, mahalanobis, jensen-shannon (posteriors), "
        "wmd (tokens; needs POT) or probability (of var-siamese); may be repeated, one row each.",
        show_default="the model's own, mostly cosine",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def open_encoder(spec: str, device: str, precision: str = "auto") -> SentenceEncoder:
    from bgt_core.encoders import open_encoder

    return open_encoder(spec, device=device, precision=precision)


def open_models(
    specs: Sequence[str],
    device: str,
    precision: str = "auto",
    distances: Sequence[str] = (),
    *,
    own_probability: bool = False,
) -> dict[str, SentenceEncoder]:
    """Open encoders and key them by `short_names`; if distances are given, once for each, as "NAME DISTANCE".

    With `own_probability` and no distances, a duplicate classifier is compared by its probability.
    """
    from bgt_core.encoders.distances import compared_by, with_own_probability

    opened = {name: open_encoder(unnamed(spec), device, precision) for spec, name in short_names(specs).items()}
    if not distances:
        return {name: with_own_probability(each) if own_probability else each for name, each in opened.items()}
    return {f"{name} {each}": compared_by(encoder, each) for name, encoder in opened.items() for each in distances}


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """Name each spec: NAME of NAME=SPEC, else the last part of its path, or the whole spec if that is not unique."""
    short = {spec: Path(spec).name for spec in specs}
    ends = list(short.values())
    names = {spec: name if name and ends.count(name) == 1 else spec for spec, name in short.items()}
    return names | {spec: spec.removesuffix("=" + unnamed(spec)) for spec in specs if unnamed(spec) != spec}


def unnamed(spec: str) -> str:
    """Remove the name from NAME=SPEC, unless a file or folder has that whole name."""
    match = re.fullmatch(r"[\w.-]+=(.+)", spec)
    return match[1] if match and not Path(spec).exists() else spec


def split_names(values: Sequence[str] | None) -> list[str]:
    """Split names at commas, and keep each once: ["a,b", "c"] -> ["a", "b", "c"]."""
    return list(dict.fromkeys(part.strip() for value in values or [] for part in value.split(",") if part.strip()))


def check_files(files: Mapping[str, Path | None]) -> None:
    """Raise NotFound if the folder of a file does not exist."""
    for name, path in files.items():
        if path and not path.absolute().parent.is_dir():
            raise NotFound(f"{path}: the folder {path.parent} does not exist.", parameter=name)


def tune_training() -> None:
    """Set environment variables that torch and oneDNN read when they are first used; those already set stay.

    Enable huge pages, and keep oneDNN's caches of compiled kernels small. Every update has new attention shapes, and
    the default of a thousand kernels takes more memory than the training of a small model.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "256")


def print_json(schema: str, document: Mapping[str, Any]) -> None:
    """Print one JSON document, with the name of its schema first."""
    print(json.dumps({"schema": schema, **document}, indent=2, ensure_ascii=False))


def note_unread(unread: int, count: int) -> None:
    """Say on stderr how many sentences hold no known token, if any do: such sentences have the same vector."""
    if unread:
        print(f"{unread:,} of {count:,} sentences hold no token that the model knows", file=sys.stderr)


@contextmanager
def rows_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar of the rows done if stderr is a terminal."""
    from rich import progress
    from rich.console import Console

    with progress.Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda rows, total: bar.update(task, completed=rows, total=total)
