"""`bgt translate` and `bgt data backtranslate`, by a trained translator."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.embed import parse_shard
from bgt_core.errors import UsageError

PORTION = 1_024  # lines translated together

PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, or auto: bf16 if the device supports it.")]
MaxLengthOption = Annotated[
    int, typer.Option(help="Maximum length of both sides, in tokens; longer sentences are not translated.")
]
TRANSLATOR = "A checkpoint or run of `bgt train translator`, or ORG/NAME."


def translate(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="One sentence per line (.gz, .xz, .zst too); - reads stdin.")
    ],
    model: Annotated[str, typer.Option(help=TRANSLATOR)],
    into: Annotated[str | None, typer.Option(help="Target language.", show_default="the model's first")] = None,
    beam: options.BeamOption = 5,
    max_length: MaxLengthOption = 100,
    device: options.DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Translate sentences, one per line; an empty line stays empty."""
    from bgt_core.data.textfile import text_lines
    from bgt_core.encoders import load
    from bgt_core.generation.translate import BeamTranslator

    translator = BeamTranslator(load(model, device, precision), lang=into, beam=beam, max_length=max_length)
    lines = (line for _, line in text_lines(source, sentences=True))
    while portion := list(islice(lines, PORTION)):
        for best in translator.translate(portion):
            print(best[0].text if best else "")


def backtranslate(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr."),
    ],
    langs: Annotated[str, typer.Option(help="Languages of the columns, as in en,fr; _ is a column to leave out.")],
    out: Annotated[
        Path, typer.Option(help="Output file, .tsv, .tsv.gz, .tsv.xz or .tsv.zst: reference, translation, cost, row.")
    ],
    model: Annotated[str, typer.Option(help=TRANSLATOR)],
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
    shard: options.ShardOption = None,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Translate one side of translations into the language of the other: each reference gets a paraphrase.

    Complete output files are not made again; split long work with --shard. The cost is in nats per token.
    Train on both texts with bgt train ... --columns a:en,b:en --data a,b,_,_=OUT.
    """
    from bgt_core.bulk.backtranslation import backtranslate as translate_file
    from bgt_core.bulk.backtranslation import check
    from bgt_core.encoders import load
    from bgt_core.generation.translate import BeamTranslator

    numbers = parse_shard(shard) if shard else None
    other, into = direction(langs, into)
    check(out)  # before the model opens
    translator = BeamTranslator(
        load(model, device, precision), source_lang=other, lang=into, beam=max(beam, count), count=count,
        max_length=max_length,
    )  # fmt: skip
    with options.rows_bar(out.name) as report:
        done = translate_file(
            translator, source, out, langs=langs.split(","), into=into, shard=numbers, strict=strict, report=report
        )
    for example in done.skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    counts = {
        "translations": done.rows,
        "sentences": done.sentences,
        "without a translation": done.untranslated,
        **done.skipped.counts,
    }
    print(", ".join(f"{number:,} {what}" for what, number in counts.items() if number), file=sys.stderr)
    print(done.path)


def direction(langs: str, into: str | None) -> tuple[str, str]:
    """Return the source and the target language of "en,fr": the target is the first, unless `into` is the second."""
    pair = [lang for lang in langs.split(",") if lang != "_"]
    if len(pair) != 2 or not all(pair) or len(set(pair)) != 2:
        raise UsageError(f"{langs}: expected two languages, as in en,fr.", parameter="langs")
    into = into or pair[0]
    if into not in pair:
        raise UsageError(f"{into}: expected one of --langs, {' or '.join(pair)}.", parameter="into")
    return pair[1 - pair.index(into)], into
