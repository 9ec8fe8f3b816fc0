"""`bgt sts`."""

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
    DistanceOption,
    JsonOption,
    LatexOption,
    ParquetOption,
    PrecisionOption,
    check_files,
    on_stdout,
    open_models,
    short_names,
    unnamed,
)
from bgt_core.errors import UsageError

YEARS = "2012-2016"


def sts(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder of STS files as SemEval or SentEval gives them, or YEAR/NAME.tsv.", show_default=False
        ),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(
            help="Years and benchmarks: 2012-2016, 2014, stsb-dev, stsb-dev-fr, sick, sts17, sts17-en-es, with commas.",
            show_default=YEARS,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A checkpoint or run folder, ORG/NAME, sentence-transformers:NAME, python:MODULE:OBJECT, "
            "vectors:FILE, baseline:words|tfidf|random, or a file of --scores; give several to compare them, "
            "and a name of your own as NAME=SPEC.",
            show_default="the model that ships",
        ),
    ] = None,
    latent: Annotated[
        str | None, typer.Option(help="semantic or language.", show_default="each that a model has")
    ] = None,
    distance: DistanceOption = None,
    lang: Annotated[str, typer.Option(help="Language of the years, where yours are translated.")] = "en",
    aggregate: Annotated[
        str, typer.Option(help="What makes data sets a year: mean (the paper's), weighted, concatenated, or all.")
    ] = "mean",
    stsb_without: Annotated[
        str | None, typer.Option(metavar="YEARS", help="Leave these years' pairs out of stsb, as 2016,2017.")
    ] = None,
    hard: Annotated[
        bool, typer.Option("--hard", help="Also Hard STS: pairs of the years whose overlap in words misleads.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap, for intervals and differences.")] = 2_000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    gaps: Annotated[bool, typer.Option("--compare", help="Also print each difference of two systems.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on what is only warned of.")] = False,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each pair's cosine, in a .parquet file for --model.")
    ] = None,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Score semantic textual similarity, several systems side by side, with intervals.

    In a row of several systems, * is the best; = are the best and those that can't be told apart from it.
    """
    from bgt_core.evaluation.sts import evaluate, read_sets, write_scores
    from bgt_core.evaluation.sts.compare import check_settings
    from bgt_core.evaluation.sts.score import AGGREGATES
    from bgt_core.tables import LEGEND, save, show

    aggregates = list(AGGREGATES) if aggregate == "all" else [aggregate]
    check_settings(aggregates, resamples, level)
    files = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files({**files, "scores": scores}, as_json)
    if sets and not data:
        raise UsageError("--sets chooses from --data; without it, kept scores are compared on all sets they share.")
    without = stsb_without.split(",") if stsb_without else []
    specs = model or [str(PRETRAINED)]
    fresh = [spec for spec in specs if not spec.endswith(".parquet")]
    kept = {name: Path(unnamed(spec)) for spec, name in short_names(specs).items() if spec not in fresh}
    if fresh and not data:
        raise UsageError("--data: say which folder the STS files are in.")
    chosen = read_sets(data, parse_sets(sets or YEARS), lang=lang, without=without) if data else None
    opened = open_models(fresh, device, precision, distance or ())
    if twice := kept.keys() & opened.keys():
        raise UsageError(f"Two systems are called '{twice.pop()}'; rename the file of kept scores.")
    result = evaluate(
        {**kept, **opened},
        chosen,
        latent=latent,
        aggregates=aggregates,
        hard=hard,
        strict=strict,
        resamples=resamples,
        level=level,
        seed=seed,
    )
    if scores:
        write_scores(scores, result.pairs)
    table = result.table()
    save(table, files, result.about)
    for line in (*result.warnings, result.about, *([LEGEND] if result.differences else [])):
        print(line, file=sys.stderr)
    if as_json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    elif not on_stdout(files):
        show(table.columns, table.lines(), text=2)
        if gaps and result.differences:
            differences = result.difference_table()
            print()
            show(differences.columns, differences.lines(), text=3)


def parse_sets(text: str) -> list[str]:
    """ "2012-2014,sick" -> ["2012", "2013", "2014", "sick"]."""
    names: list[str] = []
    for part in text.split(","):
        years = re.fullmatch(r"(\d{4})-(\d{4})", part)
        if years and years[1] > years[2]:
            raise UsageError(f"--sets {part}: years go from the first to the last, as in 2012-2016.")
        names += [str(year) for year in range(int(years[1]), int(years[2]) + 1)] if years else [part]
    return names
