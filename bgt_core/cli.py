"""`bgt`: train, embed, mine, sts, generate, info, export. Each command parses, checks, calls and prints.

Results go to stdout, progress and warnings to stderr. torch is imported when a command runs, not
before. Exit codes: 0 done, 1 internal error, 2 usage, 3 something needed is absent, 4 invalid data or
checkpoint, 130 interrupted with the state saved.
"""

from __future__ import annotations

import json
import math
import os
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
    from bgt_core.mine import Pairs

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

ModelOption = Annotated[
    Path, typer.Option("--model", help="A checkpoint or run folder.", show_default="the model that ships")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, or auto: bf16 where the device has it.")]
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
    """Train a model on parallel text; with several processes as `torchrun --nproc-per-node 2 -m bgt_core train ...`."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages; torch looks once, when it is imported
    from bgt_core import recipes, run
    from bgt_core.progress import Progress
    from bgt_core.train.workers import Workers

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
    if Workers.of_environment().first:
        print(folder)


@app.command()
def embed(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="One sentence a line (.gz, .xz, .zst too); - reads stdin.")
    ],
    out: Annotated[Path, typer.Option(help="A .npy or .safetensors file.")],
    lang: LangOption = "en",
    latent: Annotated[str, typer.Option(help="semantic or language.")] = "semantic",
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Part I of N only, as OUT-0000I-of-0000N; bgt_core.bulk.join makes them one."),
    ] = None,
) -> None:
    """Embed sentences: one row a line, order kept. A run that was stopped goes on when it is started again."""
    from bgt_core import bulk
    from bgt_core.progress import rows_bar

    numbers = parse_shard(shard) if shard else None
    bgt = load(model, device, precision)
    try:
        with rows_bar(out.name) as report:
            written = bulk.embed_file(bgt, source, out, lang=lang, latent=latent, shard=numbers, report=report)
    except KeyboardInterrupt:
        raise BadInput("Stopped; the same command goes on after the rows written so far.", 130) from None
    print(f"{written.path}: {written.rows} x {written.width} float32, {latent} latent", file=sys.stderr)


@app.command()
def mine(
    left: Annotated[Path, typer.Argument(metavar="A", help="One sentence a line (.gz, .xz, .zst too).")],
    right: Annotated[Path, typer.Argument(metavar="B", help="The same, in another language.")],
    out: Annotated[Path, typer.Option(help="A TSV: score, line of A, line of B, both sentences; best first.")],
    langs: Annotated[str | None, typer.Option(help="The languages of A and B, as in en,fr.")] = None,
    vectors: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.npy B.npy", help="Instead of --langs: vectors that `bgt embed` made of A and B."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Neighbours that a score is relative to.")] = 4,
    margin: Annotated[str, typer.Option(help="ratio, distance or absolute (the plain cosine).")] = "ratio",
    retrieval: Annotated[
        str, typer.Option(help="max (uses each sentence once), intersection, forward or backward.")
    ] = "max",
    threshold: Annotated[float, typer.Option(help="The lowest score to keep.", show_default="all kept")] = -math.inf,
    index: Annotated[str, typer.Option(help="exact or approximate; the latter for 100,000 lines and more.")] = "exact",
    recall: Annotated[float, typer.Option(help="Share of nearest neighbours for approximate search to reach.")] = 0.95,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="After approximate search, make the scores of kept pairs exact.")
    ] = False,
    gold: Annotated[
        Path | None, typer.Option(help="Known translations, line of A <tab> line of B: prints how many are found.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, show_default="all cores")] = None,
    model: ModelOption = PRETRAINED,
    device: DeviceOption = "auto",
) -> None:
    """Find translations in two texts, by how far their cosine stands out among those of other candidates."""
    from bgt_core import bitext, neighbours
    from bgt_core import mine as mining
    from bgt_core.progress import rows_bar

    mining.check(k, margin, retrieval)
    plan = neighbours.planner(index, recall)
    if (langs is None) == (vectors is None):
        raise BadInput("Give --langs to embed A and B, or --vectors where that is done.", 2)
    if out.is_dir() or not out.parent.is_dir():
        raise BadInput(f"--out {out}: name a file in a folder that exists.", 2)
    texts = bitext.read_sentences(left), bitext.read_sentences(right)
    known = bitext.read_gold(gold, *texts) if gold else None
    use_threads(threads)
    if vectors:
        sides = [bitext.read_vectors(path, text) for path, text in zip(vectors, texts, strict=True)]
    else:
        sides = bitext.embed(load(model, device), texts, langs.split(","))
    compared = plan(*sides)
    with rows_bar(out.name) as report:
        pairs = mining.mine(*sides, compared, k=k, margin=margin, retrieval=retrieval, report=report)
        if rescore:
            pairs = mining.rescore(pairs.take(pairs.scores >= threshold), *sides, k=k, margin=margin, report=report)
    kept = pairs.take(pairs.scores >= threshold)
    bitext.write_pairs(out, kept, *texts)
    of = " x ".join(f"{len(side):,}" for side in sides)
    print(f"{out}: {len(kept.scores):,} pairs of {of} different sentences; {compared}", file=sys.stderr)
    if known:
        show_found(pairs, known, threshold)


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


def load(model: Path, device: str, precision: str = "auto") -> Embedder:
    import bgt_core

    return bgt_core.load(model, device, precision)


def use_threads(count: int | None) -> None:
    """That many for torch and FAISS, which count their threads apart; all cores for None."""
    import faiss
    import torch

    if count:
        torch.set_num_threads(count)
        faiss.omp_set_num_threads(count)


def show_found(pairs: Pairs, known: tuple[np.ndarray, np.ndarray], threshold: float) -> None:
    """A table of precision, recall and F1: of all mined pairs and at thresholds."""
    from bgt_core.evaluation import mining
    from bgt_core.tables import show

    correct, count = mining.among(pairs.left, pairs.right, *known), len(known[0])
    odd = known[0] % 2
    best = mining.best_threshold(pairs.scores, correct, count)
    apart, used = mining.held_out(pairs.scores, correct, pairs.left % 2, (count - odd.sum(), odd.sum()))
    rows = [("all", "", mining.count(pairs.scores, correct, count))]
    if threshold > -math.inf:
        rows.append(("--threshold", f"{threshold:g}", mining.count(pairs.scores, correct, count, threshold)))
    rows.append(("best threshold", f"{best:.3f}", mining.count(pairs.scores, correct, count, best)))
    rows.append(("best of the other half", " ".join(f"{value:.3f}" for value in used), apart))
    show(
        ["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"],
        [
            [name, value, str(found.kept), *(f"{100 * x:.1f}" for x in (found.precision, found.recall, found.f1))]
            for name, value, found in rows
        ],
    )


def parse_shard(text: str) -> tuple[int, int]:
    """ "2/4" -> (2, 4)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match:
        raise BadInput(f"--shard {text}: expected I/N, as in 2/4.", 2)
    return int(match[1]), int(match[2])


def parse_years(text: str) -> list[str]:
    """ "2012-2014" -> ["2012", "2013", "2014"]; "2012,2015" -> ["2012", "2015"]."""
    years: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", part)
        if not match or int(match[1]) > int(match[2] or match[1]):
            raise BadInput(f"--years {text}: expected years as in 2012-2016 or 2012,2014.", 2)
        years += [str(year) for year in range(int(match[1]), int(match[2] or match[1]) + 1)]
    return years
