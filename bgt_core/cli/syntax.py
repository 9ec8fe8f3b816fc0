"""`bgt syntax`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import (
    CsvOption,
    DeviceOption,
    JsonOption,
    LangOption,
    LatexOption,
    ParquetOption,
    PrecisionOption,
    check_files,
    on_stdout,
    open_models,
)
from bgt_core.errors import UsageError, needs


def syntax(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Parsed sentences: CoNLL-U if called .conllu, else bracketed trees."),
    ],
    candidates: Annotated[
        list[Path] | None,
        typer.Option(help="Files of the sentences to find; may be repeated.", show_default="half of FILE..."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="As in `bgt sts`; may be repeated.", show_default="the model that ships"),
    ] = None,
    latent: Annotated[
        str | None, typer.Option(help="semantic or language.", show_default="each that a model has")
    ] = None,
    lang: LangOption = "en",
    lengths: Annotated[str, typer.Option(help="Words of the sentences compared.")] = "1-29",
    limit: Annotated[
        int | None, typer.Option(help="At most this many queries, drawn by the seed.", show_default="all")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap, for intervals and differences.")] = 2_000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the split into queries and candidates, and of the bootstrap.")] = 0,
    gaps: Annotated[bool, typer.Option("--compare", help="Also print each difference of two rows.")] = False,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Find each sentence's nearest neighbour of its length, and measure how alike the two are built.

    Bracketed trees, as in the Penn Treebank, lose functions (NP-SBJ is NP) and traces: labelled F1 of brackets.
    CoNLL-U: labelled attachment instead. With both: tree edit distance, lower is better, and part-of-speech accuracy.
    Copies of a sentence are left out. Rows of their own: a random neighbour, and the best choice of candidates by each
    measure.
    """
    from bgt_core.evaluation.comparison import check_bootstrap
    from bgt_core.evaluation.syntax import evaluate, pair_up, read_treebank
    from bgt_core.evaluation.syntax.table import LEGEND
    from bgt_core.tables import save, show

    outputs = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files(outputs, as_json)
    check_bootstrap(resamples, level)
    needs("numba", "syntax")
    pairing = pair_up(
        read_treebank(files, lang),
        read_treebank(candidates, lang) if candidates else None,
        lengths=parse_lengths(lengths),
        limit=limit,
        seed=seed,
    )
    encoders = open_models(model or [str(PRETRAINED)], device, precision)
    result = evaluate(encoders, pairing, lang=lang, latent=latent, resamples=resamples, level=level, seed=seed)
    table = result.table()
    save(table, outputs, result.about)
    print(f"{result.about}\n{LEGEND}", file=sys.stderr)
    if as_json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    elif not on_stdout(outputs):
        show(table.columns, table.lines())
        if gaps:
            differences = result.difference_table()
            print()
            show(differences.columns, differences.lines(), text=2)


def parse_lengths(text: str) -> tuple[int, int]:
    """ "1-29" -> (1, 29)."""
    numbers = re.fullmatch(r"(\d+)-(\d+)", text)
    if not numbers:
        raise UsageError(f"--lengths {text}: expected the fewest and the most words, as in 1-29.")
    return int(numbers[1]), int(numbers[2])
