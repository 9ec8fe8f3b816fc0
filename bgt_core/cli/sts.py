"""`bgt sts`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import (
    CsvOption,
    DeviceOption,
    JsonOption,
    LatexOption,
    ParquetOption,
    PrecisionOption,
    open_models,
    short_names,
    unnamed,
)
from bgt_core.errors import BgtError, DataError, UsageError

YEARS = "2012-2016"

if TYPE_CHECKING:
    from bgt_core.contracts import SentenceEncoder
    from bgt_core.evaluation.bootstrap import Estimate
    from bgt_core.evaluation.sts.compare import Gap, StsTable
    from bgt_core.evaluation.sts.score import StsScores, StsSet
    from bgt_core.tables import Table


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
    from bgt_core.evaluation.sts.compare import aligned, check_settings, compare
    from bgt_core.evaluation.sts.hard import hard_splits
    from bgt_core.evaluation.sts.hard import note as about_hard
    from bgt_core.evaluation.sts.parquet import write_scores
    from bgt_core.evaluation.sts.published import dataset_warnings
    from bgt_core.evaluation.sts.score import AGGREGATES, explain
    from bgt_core.tables import LEGEND, check_files, on_stdout, save, show

    aggregates = list(AGGREGATES) if aggregate == "all" else [aggregate]
    check_settings(aggregates, resamples, level)
    files = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files({**files, "scores": scores}, as_json)
    specs = model or [str(PRETRAINED)]
    fresh = [spec for spec in specs if not spec.endswith(".parquet")]
    systems = kept_systems({spec: name for spec, name in short_names(specs).items() if spec not in fresh})
    if data:
        chosen = read(data, sets or YEARS, lang, stsb_without)
    elif fresh:
        raise UsageError("--data: say which folder the STS files are in.")
    elif sets:
        raise UsageError("--sets chooses from --data; without it, kept scores are compared on all sets they share.")
    else:
        chosen = shared_sets(systems)
    odd = dataset_warnings(chosen)
    if odd and strict:
        raise DataError(" ".join(odd))
    if hard:
        splits = hard_splits([item for item in chosen if item.year.isdigit()])
        chosen, odd = [*chosen, *splits], [*odd, about_hard(splits)]
    systems = aligned(systems, chosen)
    for name, one in scored(open_models(fresh, device, precision), chosen, latent).items():
        if name in systems:
            raise UsageError(f"Two systems are called '{name}'; rename the file of kept scores.")
        systems[name] = one
    if scores:
        write_scores(scores, systems)
    result = compare(systems, aggregates, resamples=resamples, level=level, seed=seed)
    note = f"{explain(chosen, aggregates)}; {100 * level:g}% intervals from {resamples} resamples of each set's pairs"
    if result.gaps:
        note += "; differences: paired bootstrap, Holm over the table"
    table = as_table(result)
    save(table, files, note)
    for line in (*odd, note, *([LEGEND] if result.gaps else [])):
        print(line, file=sys.stderr)
    if as_json:
        print(json.dumps(as_document(result, note, odd), indent=2, ensure_ascii=False))
        return
    if on_stdout(files):
        return
    show(table.columns, table.lines(), text=2)
    if gaps and result.gaps:
        differences = gap_table(result)
        print()
        show(differences.columns, differences.lines(), text=3)


def read(data: Path, sets: str, lang: str, stsb_without: str | None) -> list[StsSet]:
    from bgt_core.evaluation.sts.files import read_sets

    return read_sets(data, parse_sets(sets), lang=lang, without=stsb_without.split(",") if stsb_without else [])


def parse_sets(text: str) -> list[str]:
    """ "2012-2014,sick" -> ["2012", "2013", "2014", "sick"]."""
    names: list[str] = []
    for part in text.split(","):
        years = re.fullmatch(r"(\d{4})-(\d{4})", part)
        if years and years[1] > years[2]:
            raise UsageError(f"--sets {part}: years go from the first to the last, as in 2012-2016.")
        names += [str(year) for year in range(int(years[1]), int(years[2]) + 1)] if years else [part]
    return names


def kept_systems(files: Mapping[str, str]) -> dict[str, StsScores]:
    """The systems of files that `--scores` wrote: called after the file, and by their own name where it has several."""
    from bgt_core.evaluation.sts.parquet import read_scores

    systems: dict[str, StsScores] = {}
    for path, file in files.items():
        found = read_scores(Path(unnamed(path)))
        systems |= {f"{file} {name}" if len(found) > 1 else file: scores for name, scores in found.items()}
    return systems


def shared_sets(systems: Mapping[str, StsScores]) -> list[StsSet]:
    """The sets that every system has scores of; BgtError where there is none."""
    first, *others = systems.values()
    names = [set(map(str, scores.sets)) for scores in others]
    shared = [data for data in first.sets if all(str(data) in each for each in names)]
    if not shared:
        raise DataError(f"{', '.join(systems)}: no set that all of them are scored on.")
    return shared


def scored(models: Mapping[str, SentenceEncoder], sets: Sequence[StsSet], latent: str | None) -> dict[str, StsScores]:
    """Each latent asked for, or each that can score these sets: language latents of two languages have no cosine."""
    from bgt_core.contracts import LANGUAGE
    from bgt_core.evaluation.sts.score import sts

    across = any(data.left_lang != data.right_lang for data in sets)
    systems = {}
    for name, bgt in models.items():
        for one in [latent] if latent else bgt.latents:
            if latent or not (across and one == LANGUAGE):
                try:
                    found = sts(bgt, sets, latent=one)
                except BgtError as error:
                    raise type(error)(f"{name}: {error}") from None
                systems[f"{name} {one}" if len(bgt.latents) > 1 else name] = found
    return systems


def as_table(result: StsTable) -> Table:
    """A row a score, a column a system."""
    from bgt_core.tables import Table

    rows = [[f"{row.year} {row.dataset}", row.score, row.pairs, *estimates] for row, estimates in result.scores.items()]
    return Table(["STS", "score", "pairs", *result.systems], rows)


def gap_table(result: StsTable) -> Table:
    """A row a difference."""
    from bgt_core.tables import Table

    rows = [
        [f"{gap.row.year} {gap.row.dataset}", gap.row.score, f"{gap.first} - {gap.second}", gap.difference, *ps(gap)]
        for gap in result.gaps
    ]
    return Table(["STS", "score", "difference", "points", "p", "p (Holm)"], rows)


def ps(gap: Gap) -> list[str]:
    """Below 0.0001 a normal tail says no more than that."""
    return [f"{p:.2g}" if p >= 1e-4 else "<0.0001" for p in (gap.p, gap.p_holm)]


def as_document(result: StsTable, note: str, odd: Sequence[str]) -> dict[str, Any]:
    """What --json prints."""
    scores = [
        {**row._asdict(), "systems": dict(zip(result.systems, map(as_entry, cells), strict=True))}
        for row, cells in result.scores.items()
    ]
    gaps = [
        {**gap.row._asdict(), "first": gap.first, "second": gap.second, **as_entry(gap.difference)}
        | {"p": gap.p, "p_holm": gap.p_holm}
        for gap in result.gaps
    ]
    made = {"level": result.level, "resamples": result.resamples, "seed": result.seed}
    return {"schema": "bgt-sts/2", "about": note, **made, "odd": list(odd), "scores": scores, "differences": gaps}


def as_entry(cell: Estimate) -> dict[str, float | str]:
    return {"value": cell.value, "ci_low": cell.low, "ci_high": cell.high, "mark": cell.mark}
