"""`bgt data backtranslate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.embed import parse_shard
from bgt_core.cli.translate import (
    CommandOption,
    MaxLengthOption,
    PrecisionOption,
    TranslatorOption,
    direction,
    open_translator,
)


def backtranslate(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr."),
    ],
    langs: Annotated[str, typer.Option(help="Languages of the columns, as in en,fr; _ is a column to leave out.")],
    out: Annotated[
        Path, typer.Option(help="Output file, .tsv, .tsv.gz, .tsv.xz or .tsv.zst: reference, translation, cost, row.")
    ],
    model: TranslatorOption = None,
    command: CommandOption = None,
    into: Annotated[
        str | None,
        typer.Option(
            help="Target language: this side is the reference, the other is translated.",
            show_default="the first of --langs",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--n-best", help="Number of translations of each sentence, one per row, the likeliest first.")
    ] = 1,
    beam: options.BeamOption = 5,
    max_length: MaxLengthOption = 100,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Part I of N only, written as OUT-0000I-of-0000N; concatenate the parts to get OUT."
        ),
    ] = None,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Translate one side of translations into the language of the other: each reference gets a paraphrase.

    A run that was stopped continues when it is started again. The cost is in nats per token, and nan for --command.
    Train on both texts with bgt train ... --columns a:en,b:en --data a,b,_,_=OUT.
    """
    from bgt_core.bulk.backtranslation import backtranslate as translate_file
    from bgt_core.bulk.backtranslation import check
    from bgt_core.cli.options import rows_bar

    numbers = parse_shard(shard) if shard else None
    other, into = direction(langs, into)
    search = {"source_lang": other, "lang": into, "beam": max(beam, count), "count": count, "max_length": max_length}
    check(out)  # before the model opens
    translator = open_translator(context, model, command, device, precision, **search)
    with rows_bar(out.name) as report:
        done = translate_file(
            translator,
            source,
            out,
            langs=langs.split(","),
            into=into,
            shard=numbers,
            strict=strict,
            report=report,
        )
    for example in done.skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    counts = {
        "translations": done.rows,
        "sentences": done.sentences,
        "without a translation": done.untranslated,
        **done.skipped.counts,
    }
    if as_json:
        document = {"schema": "bgt-data-backtranslate/1", "out": str(done.path), "rows": counts}
        print(json.dumps(document, indent=2))
        return
    print(", ".join(f"{number:,} {what}" for what, number in counts.items() if number), file=sys.stderr)
    print(done.path)
