"""`bgt translate` and `bgt data backtranslate`, by a trained translator or by any program."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.embed import parse_shard
from bgt_core.errors import UsageError, check_least

if TYPE_CHECKING:
    from bgt_core.data.parallel import SentenceTranslator
    from bgt_core.evaluation.writing import TranslationScore

PORTION = 1_024  # lines translated together

TranslatorOption = Annotated[
    Path | None, typer.Option("--model", help="A checkpoint or run of `bgt train translator`, or ORG/NAME.")
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        metavar="'PROGRAM ARGS'",
        help="Instead of --model: a program that reads lines and writes a translation of each. It is started without "
        "a shell, once for every part of the text.",
    ),
]
PrecisionOption = Annotated[str, typer.Option(help="fp32, bf16, or auto: bf16 if the device supports it.")]
MaxLengthOption = Annotated[
    int, typer.Option(help="Maximum length of both sides, in tokens; longer sentences are not translated.")
]
OF_MODEL = ("beam", "count", "max_length", "device", "precision")  # options that a program does not have


def translate(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="One sentence per line (.gz, .xz, .zst too), - reads stdin. With --score, pairs."
        ),
    ],
    model: TranslatorOption = None,
    command: CommandOption = None,
    into: Annotated[
        str | None,
        typer.Option(help="Target language.", show_default="the model's first; with --score, that of --langs"),
    ] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Translate one side of IN and score it against the other: chrF and BLEU.")
    ] = False,
    langs: Annotated[str | None, typer.Option(help="Languages of the columns, as in en,fr, for --score.")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Lower-case all text first, for --score.")] = False,
    resamples: options.ResamplesOption = 2_000,
    beam: options.BeamOption = 5,
    max_length: MaxLengthOption = 100,
    device: options.DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Translate sentences, one per line; an empty line stays empty. With --score, measure the translations.

    `bgt export --card` adds the output of --score --json to a model's card.
    """
    if not score and (langs or lowercase or as_json):
        given = {"langs": langs, "lowercase": lowercase, "as_json": as_json}
        raise UsageError("needs --score.", parameter=next(name for name in given if given[name]))
    check_least(100, resamples=resamples)
    other, into = direction(langs or "", into) if score else (None, into)
    search = {"source_lang": other, "lang": into, "beam": beam, "max_length": max_length}
    translator = open_translator(context, model, command, device, precision, **search)
    if not score:
        for lines in portions(source):
            for best in translator.translate(lines):
                print(best[0].text if best else "")
        return
    results, note = scored(translator, source, (langs or "").split(","), str(into), lowercase, resamples)
    how = f"{note}, {other} to {into}{'' if command else f', beam {beam}'}"
    signed = [(each.name, f"sacrebleu {each.signature}") for each in results]
    if as_json:
        scores = {
            each.name: {
                "score": round(each.score.value, 2),
                "low": round(each.score.low, 2),
                "high": round(each.score.high, 2),
                "source copied": round(each.copied, 2),
            }
            for each in results
        }
        protocol = [{"score": name, "how": f"{how}; {signature}"} for name, signature in signed]
        options.print_json("bgt-translate/1", {"scores": scores, "protocol": protocol})
        return
    from bgt_core.tables import show

    rows = [
        [each.name, f"{each.score.value:.1f} [{each.score.low:.1f}, {each.score.high:.1f}]", f"{each.copied:.1f}"]
        for each in results
    ]
    show(["measure", "translations", "sources copied"], rows)
    for line in (how, *(f"{name}: {signature}" for name, signature in signed)):
        print(line, file=sys.stderr)


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
    shard: options.ShardOption = None,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Translate one side of translations into the language of the other: each reference gets a paraphrase.

    What is complete is not made again: of long work, translate --shard by --shard. The cost is in nats per token, and
    nan for --command.
    Train on both texts with bgt train ... --columns a:en,b:en --data a,b,_,_=OUT.
    """
    from bgt_core.bulk.backtranslation import backtranslate as translate_file
    from bgt_core.bulk.backtranslation import check

    numbers = parse_shard(shard) if shard else None
    other, into = direction(langs, into)
    search = {"source_lang": other, "lang": into, "beam": max(beam, count), "count": count, "max_length": max_length}
    check(out)  # before the model opens
    translator = open_translator(context, model, command, device, precision, **search)
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
    if as_json:
        options.print_json("bgt-data-backtranslate/1", {"out": str(done.path), "rows": counts})
        return
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


def open_translator(
    context: typer.Context, model: Path | None, command: str | None, device: str, precision: str, **search: object
) -> SentenceTranslator:
    """Open the translator of --model or --command; `search` holds arguments of `BeamTranslator`."""
    if (model is None) == (command is None):
        raise UsageError("or --command: give one of them, a translator or a program.", parameter="model")
    if command is not None:
        for name in OF_MODEL:
            given = context.get_parameter_source(name)
            if given is not None and given.name == "COMMANDLINE":
                raise UsageError("needs --model: a program translates in its own way.", parameter=name)
        from bgt_core.generation.command import CommandTranslator

        return CommandTranslator(command)
    import bgt_core

    return bgt_core.BeamTranslator(bgt_core.load(str(model), device, precision), **search)  # type: ignore[arg-type]


def portions(source: Path) -> Iterator[list[str]]:
    """Yield the lines of a file or of stdin, `PORTION` at a time."""
    from bgt_core.data.textfile import text_lines

    lines = (line for _, line in text_lines(source, sentences=True))
    while portion := list(islice(lines, PORTION)):
        yield portion


def scored(
    translator: SentenceTranslator, source: Path, columns: Sequence[str], into: str, lowercase: bool, resamples: int
) -> tuple[list[TranslationScore], str]:
    """Score the translations of a file of pairs. Returns the scores, and a note on the number of pairs."""
    from bgt_core.data.columns import read_columns
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.evaluation.writing import score_translations

    reference = read_columns(columns).index(into)
    pairs = list(read_pairs(source, columns, Skipped(), strict=True))
    references, sources = ([pair[side] for pair in pairs] for side in (reference, 1 - reference))
    best = translator.translate(sources)
    missing = sum(not of_one for of_one in best)
    texts = [of_one[0].text if of_one else "" for of_one in best]
    scores = score_translations(texts, references, sources, lang=into, lowercase=lowercase, resamples=resamples)
    return scores, f"{len(pairs):,} pairs" + (f", {missing} of them not translated" if missing else "")
