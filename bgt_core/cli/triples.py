"""`bgt triples`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import (
    CsvOption,
    DeviceOption,
    DistanceOption,
    JsonOption,
    LangOption,
    LatexOption,
    ParquetOption,
    PrecisionOption,
    check_files,
    on_stdout,
    open_models,
)
from bgt_core.errors import UsageError


def triples(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="TSV (.gz .xz .zst) of kind, sentence, paraphrase and altered sentence, or of the last three.",
            show_default="held-out triples of the built-in grammar",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="As in `bgt sts`; may be repeated.", show_default="the model that ships"),
    ] = None,
    latent: Annotated[
        str | None, typer.Option(help="semantic or language.", show_default="each that a model has")
    ] = None,
    lang: LangOption = "en",
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of FILE, with commas: swap_obj,swap_att.", show_default="all")
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="Triples of the grammar, without FILE.", show_default="1,000")
    ] = None,
    distance: DistanceOption = None,
    resamples: Annotated[int, typer.Option(help="Number of bootstrap resamples, for differences.")] = 2_000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the grammar's triples and of the bootstrap.")] = 0,
    gaps: Annotated[bool, typer.Option("--compare", help="Also print each difference of two systems.")] = False,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Count triples in which a paraphrase is nearer to the sentence than an altered sentence of the same words.

    The altered sentence swaps roles or attributes, or changes a negation. In a row of several systems, * is the best; =
    are the best and those that can't be told apart from it.
    """
    from bgt_core.evaluation.comparison import check_bootstrap
    from bgt_core.evaluation.triples import evaluate, grammar_triples, read_triples
    from bgt_core.tables import LEGEND, save, show

    outputs = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files(outputs, as_json)
    check_bootstrap(resamples, level)
    if file and count is not None:
        raise UsageError("`count` is for the grammar's triples; a file is read as a whole. Leave one of them out.")
    if kinds and not file:
        raise UsageError("`kinds` chooses rows of a file; give FILE.")
    items = (
        read_triples(file, kinds.split(",") if kinds else ())
        if file
        else grammar_triples(1_000 if count is None else count, lang, seed)
    )
    encoders = open_models(model or [str(PRETRAINED)], device, precision, distance or ())
    result = evaluate(encoders, items, lang=lang, latent=latent, resamples=resamples, level=level, seed=seed)
    table = result.table()
    save(table, outputs, result.about)
    for line in (result.about, *([LEGEND] if result.differences else [])):
        print(line, file=sys.stderr)
    if as_json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    elif not on_stdout(outputs):
        show(table.columns, table.lines())
        if gaps and result.differences:
            differences = result.difference_table()
            print()
            show(differences.columns, differences.lines(), text=2)
