"""`bgt`: train, embed, sts, generate, info, export. Each command parses, checks, calls and prints.

Results go to stdout, progress and warnings to stderr. torch is imported when a command runs, not
before. Exit codes: 0 done, 1 internal error, 2 usage, 3 something needed is absent, 4 invalid data or
checkpoint, 130 interrupted with the state saved.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED, __version__
from bgt_core.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from bgt_core.embedder import Embedder

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

ModelOption = Annotated[
    Path, typer.Option("--model", help="A checkpoint or run folder.", show_default="the model that ships")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
LangOption = Annotated[str, typer.Option(help="Language of the sentences.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def main() -> None:
    """The `bgt` command: a foreseeable error is one line and an exit code."""
    try:
        app()
    except BadInput as error:
        print(f"bgt: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader left, as `head` does
        sys.stderr.close()
        sys.exit(0)


def version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Bilingual Generative Transformer: embeddings that keep meaning and manner apart."""


@app.command()
def train(
    recipe: Annotated[str | None, typer.Argument(help="bgt (the paper's) or bgt-small (the one that ships).")] = None,
    out: Annotated[Path, typer.Option(help="The run's folder.")] = ...,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pairs: TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr. Several allowed."
        ),
    ] = None,
    langs: Annotated[str | None, typer.Option(help="The columns' languages, as in en,fr.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A recipe's argument, as in width=128. Several allowed.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Use this SentencePiece model; otherwise one is trained.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop on the first bad line instead of skipping it.")
    ] = False,
    device: DeviceOption = "auto",
) -> None:
    """Train a model on parallel text."""
    from bgt_core import recipes, run
    from bgt_core.progress import Progress

    if resume:
        if recipe or data or overrides or langs or tokenizer:
            raise BadInput("--resume goes on with the run as it was started: give it --out and nothing else.", 2)
        with Progress() as show:
            folder = run.resume(out, device=device, report=show)
    else:
        if recipe is None or not data:
            raise BadInput(
                "A new run needs a recipe and --data, as in: bgt train bgt-small --data pairs.tsv --out runs/mine", 2
            )
        arguments = recipes.parse_overrides(overrides or [])
        if langs:
            arguments["langs"] = langs.split(",")
        chosen = recipes.build(recipe, arguments)
        with Progress() as show:
            folder = run.start(chosen, data, out, tokenizer=tokenizer, strict=strict, device=device, report=show)
    print(folder)


@app.command()
def embed(
    source: Annotated[Path, typer.Argument(metavar="IN", help="One sentence a line; - reads stdin.")],
    out: Annotated[Path, typer.Option(help="A .npy or .safetensors file.")],
    lang: LangOption = "en",
    latent: Annotated[str, typer.Option(help="semantic or language.")] = "semantic",
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
) -> None:
    """Embed sentences: one row a line, order kept."""
    if out.suffix not in (".npy", ".safetensors"):
        raise BadInput(f"--out {out}: write to a .npy or .safetensors file.", 2)
    lines = read_lines(source)
    vectors = load(model, device).embed(lines, lang=lang, latent=latent)
    write_vectors(vectors, out)
    print(f"{out}: {vectors.shape[0]} x {vectors.shape[1]} float32, {latent} latent", file=sys.stderr)


@app.command()
def sts(
    data: Annotated[Path, typer.Option(help="A folder of YEAR/DATASET.tsv: gold, sentence, sentence.")],
    years: Annotated[str, typer.Option(help="As in 2012-2016 or 2012,2014.")] = "2012-2016",
    lang: LangOption = "en",
    latent: Annotated[str, typer.Option(help="semantic, language or both.")] = "both",
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Score on semantic textual similarity, aggregated as in the paper."""
    from bgt_core.evaluation import sts as evaluation
    from bgt_core.tables import show

    sets = evaluation.read_sts(data, parse_years(years))
    bgt = load(model, device)
    latents = list(bgt.latents) if latent == "both" else [latent]
    scores = {name: evaluation.sts(bgt, sets, lang=lang, latent=name) for name in latents}
    note = evaluation.aggregation(sets)
    if as_json:
        found = {
            name: {
                "datasets": {f"{year}/{dataset}": value for (year, dataset), value in score.datasets.items()},
                "years": score.years,
                "average": score.average,
            }
            for name, score in scores.items()
        }
        print(json.dumps({"schema": "bgt-sts/1", "aggregation": note, "latents": found}, indent=2))
        return
    rows: list[list[str]] = []
    first = scores[latents[0]]
    for year in first.years:
        for item in (item for item in sets if item.year == year):
            rows.append(
                [
                    f"{year} {item.name}",
                    str(len(item.gold)),
                    *(f"{s.datasets[year, item.name]:.1f}" for s in scores.values()),
                ]
            )
        rows.append([f"{year} mean", "", *(f"{s.years[year]:.1f}" for s in scores.values())])
    rows.append(["average", "", *(f"{s.average:.1f}" for s in scores.values())])
    show(["STS", "pairs", *latents], rows)
    print(note, file=sys.stderr)


@app.command()
def generate(
    source: Annotated[str, typer.Option(help="The sentence whose meaning is kept, in any language of the model.")],
    style: Annotated[str, typer.Option(help="The sentence whose manner is taken.")],
    lang: Annotated[str, typer.Option(help="Language of the style, and of what is written.")] = "en",
    beam: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 5,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="With --sample.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="With --sample.")] = 1.0,
    seed: Annotated[int, typer.Option(help="With --sample.")] = 0,
    max_length: Annotated[int, typer.Option(help="Pieces at most.")] = 60,
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
) -> None:
    """Write the meaning of one sentence in the manner of another."""
    from bgt_core.generate import Beam, Sample, transfer

    for name, text in (("--source", source), ("--style", style)):
        if not text.strip():
            raise BadInput(f"{name} is empty; give a sentence.", 2)
    search = Sample(temperature, top_p) if sample else Beam(beam)
    print(
        transfer(load(model, device), [source], [style], lang=lang, search=search, seed=seed, max_length=max_length)[0]
    )


@app.command()
def info(
    path: Annotated[
        Path, typer.Argument(help="A checkpoint or run folder.", show_default="the model that ships")
    ] = PRETRAINED,
    as_json: JsonOption = False,
) -> None:
    """Say what a checkpoint is, and check its hashes."""
    from bgt_core import checkpoint

    found = checkpoint.info(path)
    if as_json:
        print(json.dumps({"schema": "bgt-info/1", **found}, indent=2, ensure_ascii=False))
        return
    for key, value in found.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, part in value.items():
                print(
                    f"  {name}: {part if isinstance(part, str | int | float) else json.dumps(part, ensure_ascii=False)}"
                )
        else:
            print(f"{key}: {value}")


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="A checkpoint or run folder.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    half: Annotated[bool, typer.Option("--half", help="Store weights in 16 bits.")] = False,
    card: Annotated[
        Path | None, typer.Option(help="Measured figures to keep with it, as `python -m probes.card` prints.")
    ] = None,
) -> None:
    """Copy a checkpoint for use: without the optimiser's state, in half the bytes if asked."""
    import torch

    from bgt_core import checkpoint

    found = checkpoint.load(path)
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
    print(out)


def read_card(path: Path) -> dict[str, object]:
    """The measured figures of a model card."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: no readable JSON ({error}).", 3) from None
    if not isinstance(found, dict):
        raise BadInput(f"{path}: expected a JSON object of figures.")
    return found


def load(model: Path, device: str) -> Embedder:
    import bgt_core

    return bgt_core.load(model, device)


def read_lines(source: Path) -> list[str]:
    """The lines of a UTF-8 file, or of stdin for "-"; BadInput names the line that is not UTF-8."""
    try:
        raw = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
    except OSError as error:
        raise BadInput(f"{source}: can't be read ({error.strerror}).", 3) from None
    if not raw.strip():
        raise BadInput(f"{source}: empty; expected one sentence a line.")
    lines = raw.removesuffix(b"\n").split(b"\n")
    texts = []
    for number, line in enumerate(lines, 1):
        try:
            texts.append(line.decode("utf-8").rstrip("\r"))
        except UnicodeDecodeError:
            raise BadInput(f"{source}:{number}: not UTF-8; convert the file to UTF-8.") from None
    return texts


def write_vectors(vectors: np.ndarray, out: Path) -> None:
    """Write under another name, then rename: the file is whole or not there."""
    import os

    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    partial = out.with_name(out.name + ".partial")
    try:
        if out.suffix == ".npy":
            with partial.open("wb") as file:
                np.save(file, vectors, allow_pickle=False)
        else:
            save_file({"vectors": vectors}, partial)
        os.replace(partial, out)
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        raise BadInput(f"{out}: can't be written ({error}).", 3) from None


def parse_years(text: str) -> list[str]:
    """ "2012-2014" -> ["2012", "2013", "2014"]; "2012,2015" -> ["2012", "2015"]."""
    years: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", part)
        if not match or int(match[1]) > int(match[2] or match[1]):
            raise BadInput(f"--years {text}: expected years as in 2012-2016 or 2012,2014.", 2)
        years += [str(year) for year in range(int(match[1]), int(match[2] or match[1]) + 1)]
    return years
