"""Options that several commands share, and functions that open encoders, parse and check values, and print results."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from bgt_core.encoders import KINDS, open_encoder
from bgt_core.errors import NotFound, UsageError

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.data.parallel import Skipped

SHIPPED = "the shipped model"
ENCODER = (
    "A checkpoint or run folder, ORG/NAME on the hub, "
    f"{', '.join(f'{name}:{kind.form}' for name, kind in KINDS.items())}"
)
PAIRS = "TSV (.gz .xz .zst), Parquet, or corpus for the two files corpus.en and corpus.fr"

ModelOption = Annotated[
    Path,
    Option(
        "--model",
        help="A checkpoint or run folder, bgt-en-fr, bgt-multilingual, or ORG/NAME on the hub.",
        show_default=SHIPPED,
    ),
]
TranslatorOption = Annotated[
    str, Option("--model", help="A checkpoint or run folder of `bgt train translator`, or ORG/NAME on the hub.")
]
EncoderOption = Annotated[str, Option("--model", help=f"{ENCODER}.", show_default=SHIPPED)]
EncodersOption = Annotated[
    list[str] | None,
    Option(
        "--model",
        help=f"{ENCODER}. Repeat the option to compare several encoders; write NAME=ENCODER to choose the name of an "
        "encoder in the results.",
        show_default=SHIPPED,
    ),
]
ResamplesOption = Annotated[int, Option("--resamples", help="Number of bootstrap resamples.")]
LevelOption = Annotated[float, Option("--level", help="Confidence level of the intervals.")]
SeedOption = Annotated[int, Option("--seed", help="Seed of all random draws.")]
StrictOption = Annotated[bool, Option("--strict", help="Stop at the first invalid line instead of skipping it.")]
DeviceOption = Annotated[str, Option(help="auto (a GPU if available), cpu, cuda, or cuda:1 for the second GPU.")]
PrecisionOption = Annotated[str, Option(help="fp32, bf16, auto (bf16 if the device supports it), or int8 on a CPU.")]
WeightsOption = Annotated[str, Option("--precision", help="fp32, bf16, or auto: bf16 if the device supports it.")]
BeamOption = Annotated[int, Option("--beam", help="Beam size; 1 is greedy search.")]
MaxLengthOption = Annotated[
    int, Option(help="Maximum length of source and translation, in tokens; longer sentences are not translated.")
]
ShardOption = Annotated[
    str | None,
    Option(
        metavar="I/N", help="Compute only part I of N, and write it to OUT-0000I-of-0000N. The parts can be joined."
    ),
]
DistanceOption = Annotated[
    list[str] | None,
    Option(
        "--distance",
        help="Distance by which a model compares sentences: cosine, euclidean, w2, mahalanobis or jensen-shannon "
        "(between posteriors), wmd (between bags of tokens; needs POT), or probability (models of var-siamese). May "
        "be repeated; the results then show each distance separately.",
        show_default="the default of the model, usually cosine",
    ),
]
JsonOption = Annotated[bool, Option("--json", help="Print the result as one JSON document.")]


def open_models(
    specs: Sequence[str],
    device: str,
    precision: str = "auto",
    distances: Sequence[str] = (),
    *,
    own_probability: bool = False,
) -> dict[str, SentenceEncoder]:
    """Open encoders. Return {name: encoder}, with the names of `short_names`; if distances are given, {"NAME DISTANCE":
    encoder that compares sentences by this distance}. Without distances, and if `own_probability` is True, duplicate
    classifiers compare sentences by the probability that they predict."""
    from bgt_core.encoders.distances import compared_by, with_own_probability

    names = short_names(specs)
    opened = {name: open_encoder(unnamed(spec), device=device, precision=precision) for spec, name in names.items()}
    if not distances:
        return {name: with_own_probability(each) if own_probability else each for name, each in opened.items()}
    return {f"{name} {each}": compared_by(encoder, each) for name, encoder in opened.items() for each in distances}


def short_names(specs: Sequence[str]) -> dict[str, str]:
    """Choose a name for each encoder on the command line: NAME for NAME=SPEC; else the last part of the path, if no
    other encoder has the same last part; else the whole SPEC."""
    short = {spec: Path(spec).name for spec in specs}
    ends = list(short.values())
    names = {spec: name if name and ends.count(name) == 1 else spec for spec, name in short.items()}
    return names | {spec: spec.removesuffix("=" + unnamed(spec)) for spec in specs if unnamed(spec) != spec}


def unnamed(spec: str) -> str:
    """Remove the name from an encoder's NAME=SPEC, unless a file or folder is called "NAME=SPEC"."""
    match = re.fullmatch(r"[\w.-]+=(.+)", spec)
    return match[1] if match and not Path(spec).exists() else spec


def split_names(values: Sequence[str] | None) -> list[str]:
    """Split lists of names at commas, and drop repetitions: ["a,b", "c,a"] -> ["a", "b", "c"]."""
    return list(dict.fromkeys(part.strip() for value in values or [] for part in value.split(",") if part.strip()))


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """Parse the value of --shard: "2/4", the second of four parts, gives (2, 4). Return None for None."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match:
        raise UsageError(f"{text}: expected I/N, as in 2/4.", parameter="shard")
    return int(match[1]), int(match[2])


def check_folder(out: Path) -> None:
    """Raise NotFound if the folder for an output file does not exist."""
    if not out.absolute().parent.is_dir():
        raise NotFound(f"{out}: the folder {out.parent} does not exist.", parameter="out")


def tune_training() -> None:
    """Set environment variables that enable huge pages and limit oneDNN's caches of compiled kernels, unless the user
    has set them. Every update has new attention shapes, which fill the caches. With oneDNN's default limit, the caches
    take more memory than the training of a small model."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "256")


def print_json(schema: str, document: Mapping[str, Any]) -> None:
    """Print a JSON document whose first entry is the name of its schema."""
    print(json.dumps({"schema": schema, **document}, indent=2, ensure_ascii=False))


def note_unknown(unknown: int, count: int) -> None:
    """Warn on stderr if sentences consist of unknown tokens only, because all such sentences have the same vector."""
    if unknown:
        print(f"{unknown:,} of {count:,} sentences have no token that the model knows", file=sys.stderr)


def counted(counts: Mapping[str, int]) -> str:
    """Format the counts that are not 0, as in "1,200 kept, 3 copies"."""
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def note_rows(counts: Mapping[str, int], skipped: Skipped) -> None:
    """Print on stderr why the first invalid lines were skipped, then counts of kept, dropped and skipped rows."""
    for example in skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    print(counted({**counts, **skipped.counts}), file=sys.stderr)


@contextmanager
def rows_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar with the number of finished lines of text, if stderr is a terminal."""
    from rich import progress
    from rich.console import Console

    with progress.Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name, total=None)
        yield lambda rows, total: bar.update(task, completed=rows, total=total)
