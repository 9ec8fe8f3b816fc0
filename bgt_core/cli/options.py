"""Options that several commands have, and how they are read and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.errors import NotFound, UsageError
from bgt_core.tables import STDOUT

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.embedder import Embedder

ModelOption = Annotated[
    Path,
    typer.Option(
        "--model",
        help="A checkpoint or run folder, bgt-en-fr, bgt-multilingual, or ORG/NAME.",
        show_default="the model that ships",
    ),
]
ENCODER = (
    "A checkpoint or run folder, ORG/NAME, sentence-transformers:NAME, python:MODULE:OBJECT, vectors:FILE or "
    "baseline:words|tfidf|random"
)
EncoderOption = Annotated[str, typer.Option("--model", help=f"{ENCODER}.", show_default="the model that ships")]
EncodersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help=f"{ENCODER}; give several to compare them, and a name of your own as NAME=SPEC.",
        show_default="the model that ships",
    ),
]
CsvOption = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Also write the table as CSV; - prints it alone.")
]
LatexOption = Annotated[
    Path | None, typer.Option("--latex", metavar="FILE", help="Also write it for LaTeX, booktabs; - prints it.")
]
ParquetOption = Annotated[Path | None, typer.Option("--parquet", metavar="FILE", help="Also write it as Parquet.")]
MdOption = Annotated[Path | None, typer.Option("--md", metavar="FILE", help="Also write it as Markdown; - prints it.")]
ResamplesOption = Annotated[int, typer.Option("--resamples", help="Number of bootstrap resamples.")]
LevelOption = Annotated[float, typer.Option("--level", help="Level of the intervals.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop on the first bad line instead of skipping it.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, auto (bf16 where the device has it); int8 on a CPU.")]
BeamOption = Annotated[int, typer.Option("--beam", help="Hypotheses kept; 1 is greedy.")]
NgramOption = Annotated[
    int,
    typer.Option("--no-repeat-ngram", min=0, metavar="N", help="Never the same N tokens twice; 0: no such rule."),
]
MaxRunOption = Annotated[
    int, typer.Option("--max-run", min=0, metavar="N", help="No token more than N times in a row; 0: no such rule.")
]
LengthPenaltyOption = Annotated[
    float,
    typer.Option("--length-penalty", help="Rank a beam by log-probability / length to this power; more: longer text."),
]
LangOption = Annotated[str, typer.Option(help="Language of the sentences.")]
DistanceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--distance",
        help="How models of ours compare sentences: cosine, euclidean, w2, mahalanobis, jensen-shannon (posteriors), "
        "wmd (pieces; needs POT) or probability (of var-siamese); may be repeated, for a row each.",
        show_default="the model's own, mostly cosine",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

PRINTED = ("csv", "latex", "md")  # what can go to stdout


def load(model: Path, device: str, precision: str = "auto") -> Embedder:
    import bgt_core

    return bgt_core.load(model, device, precision)


def open_encoder(spec: str, device: str, precision: str = "auto") -> SentenceEncoder:
    from bgt_core import adapters

    return adapters.open_encoder(spec, device=device, precision=precision)


def open_models(
    specs: Sequence[str],
    device: str,
    precision: str = "auto",
    distances: Sequence[str] = (),
    *,
    own_probability: bool = False,
) -> dict[str, SentenceEncoder]:
    """What these specs name, by `short_names`; with distances once for each, by "NAME DISTANCE".

    With `own_probability` and no distances, a model that tells duplicates is compared by its probability.
    """
    from bgt_core.adapters.distances import compared_by, with_own_probability

    opened = {name: open_encoder(unnamed(spec), device, precision) for spec, name in short_names(specs).items()}
    if not distances:
        return {name: with_own_probability(each) if own_probability else each for name, each in opened.items()}
    return {f"{name} {each}": compared_by(encoder, each) for name, encoder in opened.items() for each in distances}


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """The name given as NAME=SPEC; else the last part of each path, or all of it where others end alike."""
    short = {spec: Path(spec).name.removesuffix(".parquet") for spec in specs}
    ends = list(short.values())
    names = {spec: name if name and ends.count(name) == 1 else spec for spec, name in short.items()}
    return names | {spec: spec.removesuffix("=" + unnamed(spec)) for spec in specs if unnamed(spec) != spec}


def unnamed(spec: str) -> str:
    """NAME=SPEC without its name; a file or folder that is so called keeps it."""
    match = re.fullmatch(r"[\w.-]+=(.+)", spec)
    return match[1] if match and not Path(spec).exists() else spec


def split_names(values: Sequence[str] | None) -> list[str]:
    """["a,b", "c"] -> ["a", "b", "c"], each once."""
    return list(dict.fromkeys(part.strip() for value in values or [] for part in value.split(",") if part.strip()))


def on_stdout(files: Mapping[str, Path | None]) -> list[str]:
    """Those of the files that are to be printed instead, "-"."""
    return [name for name, path in files.items() if path == STDOUT]


def check_files(files: Mapping[str, Path | None], as_json: bool = False) -> None:
    """NotFound where the folder of a file is absent, UsageError where stdout can't hold all it should."""
    printed = on_stdout(files)
    if binary := [name for name in printed if name not in PRINTED]:
        raise UsageError(f"-: only {', '.join(PRINTED)} can go to stdout; give a file.", parameter=binary[0])
    if len(printed) + as_json > 1:
        others = [f"--{name} -" for name in printed[1:]] + ["--json"] * as_json
        text = f"- and {' and '.join(others)}: stdout holds one document; give files for the others."
        raise UsageError(text, parameter=printed[0])
    for name, path in files.items():
        if path and not path.absolute().parent.is_dir():
            raise NotFound(f"{path}: there is no folder {path.parent}.", parameter=name)


def tune_training() -> None:
    """Settings that torch and oneDNN look up once, when they are first used; the caller's own stay.

    Huge pages; and few compiled products in oneDNN's caches, where every update brings new shapes of attention and by
    default a thousand stay, in more memory than a small model's training takes.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "256")
