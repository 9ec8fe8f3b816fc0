"""`bgt data`: list, download, prepare, compare; `cli` adds `alter` and `backtranslate`."""

from __future__ import annotations

import functools
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.compare import ClassifierOption, LanguageModelOption, WordsOption, compare, sentence_models
from bgt_core.cli.errors import Command
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.data.clean import Cleaned
    from bgt_core.data.fetch import DataSource, Offer

LARGE = 10**9  # bytes; a download of this size or more needs consent

app = typer.Typer(no_args_is_help=True, help="Data sets: find, download and prepare them.")

MaxPairsOption = Annotated[int | None, typer.Option(help="Keep a random sample of that many pairs.")]


@app.command("list", cls=Command)
def list_(
    pair: Annotated[
        str | None, typer.Option(help="Two languages, as in en-fr: ask OPUS, over the network, for its corpora.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """List the data sets that can be downloaded, with their licences."""
    from bgt_core.data.fetch import PUBLISHED, SOURCES, opus, transfer
    from bgt_core.tables import show

    if pair:
        with transfer.session() as http:
            entries = opus.corpora(http, opus.languages(pair))
        if as_json:
            corpora = [entry._asdict() for entry in entries]
            print(json.dumps({"schema": "bgt-data-opus/1", "pair": pair, "corpora": corpora}, indent=2))
            return
        rows = [[f"opus:{e.name}", e.release, f"{e.pairs:,}", readable(e.bytes)] for e in entries]
        show(["name", "release", "pairs", "archive"], rows, text=2)
        print(f"Download one: bgt data download NAME --pair {pair} --out DIR", file=sys.stderr)
        return
    if as_json:
        sources = [
            {
                "name": source.name,
                "what": source.what,
                "licence": source.licence,
                "pairs": source.pairs,
                "release": source.release,
                "addresses": source.addresses,
                "checksums": checksums(source),
            }
            for source in SOURCES
        ]
        published = {address: {"bytes": size, "sha256": sha256} for address, (size, sha256) in PUBLISHED.items()}
        document = {"schema": "bgt-data-list/1", "sources": sources, "published": published}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    rows = [[s.name, s.release, s.pairs, checksums(s), s.licence, s.what] for s in SOURCES]
    show(["name", "release", "pairs", "checksum", "licence", "what"], rows, text=6)
    print(
        "Addresses are those that public code uses, and may have moved; sizes are asked for before a download. "
        "Checksum 'first download': its SHA-256 is kept, and later ones must equal it. "
        "More corpora: bgt data list --pair en-fr",
        file=sys.stderr,
    )


@app.command(cls=Command)
def download(
    name: Annotated[str, typer.Argument(help="A name of `bgt data list`, or opus:NAME for any corpus of OPUS.")],
    out: Annotated[Path, typer.Option(help="Output folder; its bgt-data.json lists the files and their sources.")],
    pair: Annotated[str | None, typer.Option(help="Two languages, as in en-fr; columns follow their order.")] = None,
    release: Annotated[str | None, typer.Option(help="Release of a corpus, as in v2018; or latest.")] = None,
    max_pairs: MaxPairsOption = None,
    raw: Annotated[bool, typer.Option("--raw", help="Keep the source's own files as they are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before downloading a gigabyte or more.")] = False,
) -> None:
    """Download a data set, verified and ready to use; if it is stopped, the same command continues."""
    from bgt_core.cli.options import rows_bar
    from bgt_core.data import fetch

    try:
        with ExitStack() as stack:
            bar = functools.cache(lambda: stack.enter_context(rows_bar("downloading")))  # not before the user agrees
            source = fetch.source(name)
            request = fetch.Request.parse(source, pair=pair, release=release, max_pairs=max_pairs, raw=raw)
            done = fetch.download(
                request,
                out,
                agree=lambda offer: agree(offer, yes),
                report=lambda so_far, total: bar()(so_far, total),
            )
    except KeyboardInterrupt as stop:
        if any(out.rglob("*.part")):
            stop.add_note("Stopped; the same command continues after what has arrived.")
        raise
    for path in done.files:
        print(path)
    left_out = ", ".join(f"{count:,} {why}" for why, count in done.left_out.items() if count)
    if not done.new:
        print("nothing to do: all is there", file=sys.stderr)
    if left_out:
        print(f"left out: {left_out}", file=sys.stderr)


@app.command(cls=Command)
def prepare(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", help="TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr."),
    ],
    out: Annotated[
        Path, typer.Option(help="Output file, .tsv, .tsv.gz, .tsv.xz, .tsv.zst or .parquet; OUT.json is its card.")
    ],
    langs: Annotated[str | None, typer.Option(help="Languages of the columns, as in en,fr.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns by name and language, as in reference:en,translation:en,cost:label."),
    ] = None,
    min_length: Annotated[int, typer.Option(help="Minimum length of every side, in --unit.")] = 1,
    max_length: Annotated[int, typer.Option(help="Maximum length of every side, in --unit.")] = 100,
    max_ratio: Annotated[float, typer.Option(help="Maximum ratio of the longer side's length to the shorter's.")] = 9.0,
    unit: Annotated[
        str, typer.Option(help="Unit of lengths: words, characters, or tokens (of --tokenizer).")
    ] = "words",
    tokenizer: Annotated[Path | None, typer.Option(help="A SentencePiece model to count tokens with.")] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="A file or folder of evaluation sentences, to drop pairs with one of them; may be repeated."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCORE=MIN..MAX",
            help="Keep rows whose translation has a score in this range, as in cost=0..2; both ends are included, and "
            "either may be left out. Scores: words (their number, at most 100), cost (the column of numbers), "
            "overlap-1, overlap-2, overlap-3 (share of n-grams), bleu (0 to 1), perplexity, classifier. May be "
            "repeated.",
        ),
    ] = None,
    words: WordsOption = "spaces",
    language_model: LanguageModelOption = None,
    classifier: ClassifierOption = None,
    device: options.DeviceOption = "auto",
    first_of_reference: Annotated[
        bool, typer.Option("--first-of-reference", help="Of rows with the same reference, keep the first that passes.")
    ] = False,
    max_pairs: MaxPairsOption = None,
    seed: options.SeedOption = 1,
    licence: Annotated[
        str | None, typer.Option(help="Licence to write on the card, in place of those of the sources.")
    ] = None,
    strict: options.StrictOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Normalise and filter translations, drop copies and evaluation sentences, and write the rest with a card."""
    from bgt_core.cli.options import rows_bar
    from bgt_core.data.clean import CleaningRules, clean
    from bgt_core.data.filters.scores import ScoreRange
    from bgt_core.data.pairfile import suffix

    if bool(langs) == bool(columns):
        raise UsageError("or --columns: give one of them, to name the columns.", parameter="langs")
    suffix(out)  # before a model opens
    with rows_bar("pairs read") as report:
        ranges = tuple(map(ScoreRange.parse, keep or []))
        models = sentence_models(language_model, classifier, words, device, {each.score for each in ranges})
        rules = CleaningRules(
            min_length, max_length, max_ratio, unit, max_pairs, seed, ranges, words, first_of_reference
        )
        done = clean(
            sources,
            (columns or langs or "").split(","),
            out,
            rules,
            exclude=exclude or [],
            models=models,
            tokenizer=tokenizer,
            licence=licence,
            strict=strict,
            report=report,
        )
    show_written(out, done, "bgt-data-prepare/1" if as_json else None)


app.command(cls=Command)(compare)


def show_written(out: Path, done: Cleaned, schema: str | None) -> None:
    """Print the number of rows written and left out, with the reasons: as text, or as JSON of this schema."""
    for example in done.skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    counts = {"kept": done.kept, **done.dropped, **done.skipped.counts}
    if schema:
        print(json.dumps({"schema": schema, "out": str(out), "pairs": counts}, indent=2))
        return
    print(", ".join(f"{count:,} {what}" for what, count in counts.items() if count), file=sys.stderr)
    print(out)


def agree(offer: Offer, yes: bool) -> None:
    """Announce a download; ask before a gigabyte or more, and refuse if stdin is not a terminal."""
    size = "of unknown size" if offer.bytes is None else readable(offer.bytes)
    print(f"{offer.name}: {size}; licence: {offer.licence}", file=sys.stderr)
    for address in offer.addresses:
        print(f"  {address}{'' if address.startswith('https:') else ' (not encrypted on its way)'}", file=sys.stderr)
    if yes or (offer.bytes is not None and offer.bytes < LARGE):
        return
    if not sys.stdin.isatty():
        raise UsageError(f"is needed to download {offer.name}, which is {size}.", parameter="yes")
    if not typer.confirm("Download it?", err=True):
        raise UsageError(f"{offer.name}: not downloaded.")


def checksums(source: DataSource) -> str:
    """Return the origin of a source's checksums."""
    from bgt_core.data.fetch import PUBLISHED

    if not source.release:
        return "published" if all(address in PUBLISHED for address in source.addresses) else "first download"
    (pattern,) = source.addresses
    start, _, end = pattern.partition("{release}")
    start += source.release + end.partition("{opus_pair}")[0]
    known = sorted(address.removeprefix(start).removesuffix(".txt.zip") for address in PUBLISHED if start in address)
    if not known:
        return "first download"
    return "published" if known == [source.pairs] else f"published for {', '.join(known)}; else first download"


def readable(size: int) -> str:
    """Bytes as people write them: 1.3 GB."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} bytes"
