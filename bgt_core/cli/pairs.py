"""`bgt pairs`."""

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


def pairs(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Pairs that are judged: TSV (.gz .xz .zst) of label, 1 or 0, a and b."),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(help="As in `bgt sts`; may be repeated.", show_default="the model that ships"),
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs to choose thresholds on; without, AUC alone.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs to train tf-idf + logistic regression on.")
    ] = None,
    columns: Annotated[str, typer.Option(help="Of all these files; _ for one that is not read.")] = "label,a,b",
    distance: DistanceOption = None,
    latent: Annotated[
        str | None, typer.Option(help="semantic or language.", show_default="each that a model has")
    ] = None,
    lang: LangOption = "en",
    resamples: Annotated[int, typer.Option(help="Of the bootstrap, for intervals and differences.")] = 2_000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    gaps: Annotated[bool, typer.Option("--compare", help="Also print each difference of two systems.")] = False,
    roc: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the ROC curves with their bands, as CSV or, so named, .parquet."),
    ] = None,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Tell pairs that mean the same from others: accuracy, F1, area under the ROC curve, with intervals.

    Beside the models stand a bag of words, tf-idf and, with --train, logistic regression on tf-idf. A trained
    var-siamese gives probabilities, and 0.5 is their threshold.
    """
    from bgt_core.adapters.distances import with_own_probability
    from bgt_core.evaluation.comparison import check_bootstrap
    from bgt_core.evaluation.pairs import evaluate, read_labelled
    from bgt_core.evaluation.pairs.table import LEGEND
    from bgt_core.tables import save, show

    outputs = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files({**outputs, "roc": roc}, as_json)
    check_bootstrap(resamples, level)
    names = columns.split(",")
    encoders = open_models(model or [str(PRETRAINED)], device, precision, distance or ())
    if not distance:
        encoders = {name: with_own_probability(encoder) for name, encoder in encoders.items()}
    result = evaluate(
        encoders,
        read_labelled(file, names),
        dev=read_labelled(dev, names) if dev else None,
        train=read_labelled(train, names) if train else None,
        lang=lang,
        latent=latent,
        resamples=resamples,
        level=level,
        seed=seed,
    )
    table = result.table()
    save(table, outputs, result.about)
    if roc:
        save(result.roc_table(), {"parquet" if roc.suffix == ".parquet" else "csv": roc}, result.about)
    print(f"{result.about}\n{LEGEND}", file=sys.stderr)
    if as_json:
        print(json.dumps(result.as_dict(), indent=2, ensure_ascii=False))
    elif not on_stdout(outputs):
        show(table.columns, table.lines())
        if gaps:
            differences = result.difference_table()
            print()
            show(differences.columns, differences.lines(), text=2)
