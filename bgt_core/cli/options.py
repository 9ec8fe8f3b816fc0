"""Options that several commands have, and how they are read and checked."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgt_core.data.columns import canonical_column, is_file, lang_codes
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
    "A checkpoint or run folder, ORG/NAME, sentence-transformers:NAME, onnx:FOLDER, python:MODULE:OBJECT, "
    "vectors:FILE, split:FOLDER or baseline:words|tfidf|random"
)
EncoderOption = Annotated[str, typer.Option("--model", help=f"{ENCODER}.", show_default="the model that ships")]
EncodersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help=f"{ENCODER}; repeat it to compare several, and write NAME=SPEC to name one.",
        show_default="the model that ships",
    ),
]
CsvOption = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Also write the table as CSV; - prints it alone.")
]
LatexOption = Annotated[
    Path | None, typer.Option("--latex", metavar="FILE", help="Also write the table as LaTeX (booktabs); - prints it.")
]
ParquetOption = Annotated[
    Path | None, typer.Option("--parquet", metavar="FILE", help="Also write the table as Parquet.")
]
MdOption = Annotated[
    Path | None, typer.Option("--md", metavar="FILE", help="Also write the table as Markdown; - prints it.")
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
NgramOption = Annotated[
    int,
    typer.Option("--no-repeat-ngram", min=0, metavar="N", help="Never repeat a run of N tokens; 0: no limit."),
]
MaxRunOption = Annotated[
    int, typer.Option("--max-run", min=0, metavar="N", help="A token may stand at most N times in a row; 0: no limit.")
]
LengthPenaltyOption = Annotated[
    float,
    typer.Option(
        "--length-penalty", help="Rank hypotheses by log-probability / length to this power; larger: longer text."
    ),
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

LANGS = {"lang", "langs", "columns", "source_lang", "into", "of"}  # parameters that hold languages
OUTPUTS = ("out", "items", "csv", "latex", "parquet", "md", "predictions")  # parameters that are written
ELSEWHERE = ("model", "path", "store", "classifier", "cache")
PRINTED = ("csv", "latex", "md")  # formats that can go to stdout


def load(model: Path, device: str, precision: str = "auto") -> Embedder:
    import bgt_core

    return bgt_core.load(model, device, precision)


def open_encoder(spec: str, device: str, precision: str = "auto") -> SentenceEncoder:
    from bgt_core import encoders

    return encoders.open_encoder(spec, device=device, precision=precision)


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
    """Name each spec: as given in NAME=SPEC, else the last part of its path, or all of it if another ends the same."""
    short = {spec: Path(spec).name for spec in specs}
    ends = list(short.values())
    names = {spec: name if name and ends.count(name) == 1 else spec for spec, name in short.items()}
    return names | {spec: spec.removesuffix("=" + unnamed(spec)) for spec in specs if unnamed(spec) != spec}


def unnamed(spec: str) -> str:
    """Remove the name from NAME=SPEC, unless a file or folder has that whole name."""
    match = re.fullmatch(r"[\w.-]+=(.+)", spec)
    return match[1] if match and not Path(spec).exists() else spec


def split_names(values: Sequence[str] | None) -> list[str]:
    """["a,b", "c"] -> ["a", "b", "c"], each once."""
    return list(dict.fromkeys(part.strip() for value in values or [] for part in value.split(",") if part.strip()))


def on_stdout(files: Mapping[str, Path | None]) -> list[str]:
    """Return the names of the files given as "-", which are printed."""
    return [name for name, path in files.items() if path == STDOUT]


def spell_langs(given: dict[str, Any]) -> None:
    """Spell the languages among a command's arguments as `lang_code` does: en for EN, eng and eng_Latn."""
    for name in LANGS & given.keys():
        value = given[name]
        if isinstance(value, list):  # of bgt-probe: fr,en or en-fr
            given[name] = [",".join(lang_codes(part.strip()) for part in each.split(",")) for each in value]
        elif isinstance(value, str) and not (name == "langs" and "," not in value):  # en-fr is refused as it is
            if not value.strip():
                raise UsageError("'': expected a language code, as en.", parameter=name)
            given[name] = ",".join(map(canonical_column, value.split(",")))


def check_paths(given: Mapping[str, object]) -> dict[Path, int]:
    """Check the paths among a command's arguments, before it opens a model.

    Args:
        given: Its arguments by name. Those in `ELSEWHERE` may name something on the hub, or have a message of their
            own, and are left out.

    Returns:
        When each output was last changed, by its path.

    Raises:
        NotFound: An input is absent, as itself and as X of X.en and X.fr; or an output can't be written.
    """
    outputs: dict[Path, int] = {}
    for name, value in given.items():
        for path in value if isinstance(value, list | tuple) else [value]:
            made = name in ELSEWHERE or (name == "data" and given.get("download"))
            if not isinstance(path, Path) or path == STDOUT or made:
                continue
            if name in OUTPUTS:
                outputs[path] = modified(path)
                folder = next(each for each in path.absolute().parents if is_file(str(each)))
                if not folder.is_dir() or not os.access(folder, os.W_OK):
                    raise NotFound(f"{path}: can't be written: {folder} is no folder to write to.", parameter=name)
            elif not is_file(str(path)) and not any(path.parent.glob(f"{glob.escape(path.name)}.*")):
                raise NotFound(f"{path}: no such file or folder.", parameter=name)
    return outputs


def modified(path: Path) -> int:
    """When a file or folder was last changed; 0 if it does not exist."""
    return path.stat().st_mtime_ns if is_file(str(path)) else 0


def check_files(files: Mapping[str, Path | None], as_json: bool = False) -> None:
    """Raise NotFound if the folder of a file does not exist, UsageError if stdout would get two documents."""
    printed = on_stdout(files)
    if binary := [name for name in printed if name not in PRINTED]:
        raise UsageError(f"-: only {', '.join(PRINTED)} can go to stdout; give a file.", parameter=binary[0])
    if len(printed) + as_json > 1:
        others = [f"--{name} -" for name in printed[1:]] + ["--json"] * as_json
        text = f"- and {' and '.join(others)}: stdout holds one document; give files for the others."
        raise UsageError(text, parameter=printed[0])
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
