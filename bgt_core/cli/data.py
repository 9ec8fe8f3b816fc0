"""`bgt data`: download, prepare, alter; `cli` adds `backtranslate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.errors import Command
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.data.clean import Cleaned
    from bgt_core.data.scores import SentenceScore

app = typer.Typer(no_args_is_help=True, help="Data sets: find, download and prepare them.")

OutOption = Annotated[Path, typer.Option(help="Output file, .tsv, .tsv.gz, .tsv.xz or .tsv.zst; OUT.json is its card.")]


@app.command(cls=Command)
def download(
    name: Annotated[
        str | None,
        typer.Argument(help="A data set, or opus:NAME for any corpus of OPUS. Without a name: list the data sets."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder; its bgt-data.json lists the files and their sources.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Two languages, as in en-fr; columns follow their order.")] = None,
    release: Annotated[str | None, typer.Option(help="Release of a corpus, as in v2018.")] = None,
) -> None:
    """Download a data set, verified and ready to use. Without a name, list all data sets with their licences."""
    from bgt_core.data import fetch
    from bgt_core.data.sources import choose

    if name is None:
        list_sources()
        return
    choice = choose(name, pair=pair, release=release)
    if out is None:
        raise UsageError("is needed: the folder to download to.", parameter="out")
    print(f"{choice.stem}; licence: {choice.source.licence}", file=sys.stderr)
    for address in choice.archives:
        print(f"  {address}{'' if address.startswith('https:') else ' (not encrypted on its way)'}", file=sys.stderr)
    with options.rows_bar("downloading") as report:
        done = fetch.download(choice, out, report=report)
    for path in done.files:
        print(path)
    if not done.new:
        print("nothing to do: all is there", file=sys.stderr)
    if left_out := ", ".join(f"{count:,} {why}" for why, count in done.left_out.items() if count):
        print(f"left out: {left_out}", file=sys.stderr)


def list_sources() -> None:
    """Print the data sets of the package: name, release, languages, licence, content."""
    from bgt_core.data.sources import SOURCES
    from bgt_core.tables import show

    rows = [[each.name, each.release, each.pairs, each.licence, each.what] for each in SOURCES]
    show(["name", "release", "pairs", "licence", "what"], rows, text=5)
    print(
        "Addresses are those that public code uses, and may have moved. The SHA-256 of a first download is kept, and "
        "later ones must equal it. More corpora: https://opus.nlpl.eu",
        file=sys.stderr,
    )


@app.command(cls=Command)
def prepare(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", help="TSV (.gz .xz .zst), Parquet, or the prefix of corpus.en and corpus.fr."),
    ],
    langs: Annotated[
        str,
        typer.Option(
            help="Languages of the columns, as in en,fr; or names with languages, as in "
            "reference:en,translation:en,cost:label."
        ),
    ],
    out: OutOption,
    min_length: Annotated[int, typer.Option(help="Minimum length of every side, in words.")] = 1,
    max_length: Annotated[int, typer.Option(help="Maximum length of every side, in words.")] = 100,
    max_ratio: Annotated[float, typer.Option(help="Maximum ratio of the longer side's length to the shorter's.")] = 9.0,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A SentencePiece model: lengths are then in its tokens.")
    ] = None,
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
    language_model: Annotated[
        Path | None,
        typer.Option(
            help='References, one per line or in the first column, that train a 3-gram model; needs "bgt\\[lm]".'
        ),
    ] = None,
    classifier: Annotated[
        Path | None, typer.Option(help="A run of `bgt train reference-classifier`: P(reference) of each sentence.")
    ] = None,
    first_of_reference: Annotated[
        bool, typer.Option("--first-of-reference", help="Of rows with the same reference, keep the first that passes.")
    ] = False,
    max_pairs: Annotated[int | None, typer.Option(help="Keep a random sample of that many pairs.")] = None,
    strict: options.StrictOption = False,
) -> None:
    """Normalise and filter translations, drop copies and evaluation sentences, and write the rest with a card.

    Lengths are in words, or in characters if a language puts no spaces between words.
    """
    from bgt_core.data.clean import CleaningRules, clean, length_unit
    from bgt_core.data.parallel import check_table
    from bgt_core.data.scores import ScoreRange

    check_table(out)  # fail early, before a model is loaded
    columns = langs.split(",")
    ranges = tuple(map(ScoreRange.parse, keep or []))
    models = sentence_models(language_model, classifier, {each.score for each in ranges})
    unit = "tokens" if tokenizer else length_unit(columns)
    rules = CleaningRules(
        min_length, max_length, max_ratio, unit, max_pairs, keep=ranges, first_of_reference=first_of_reference
    )
    with options.rows_bar("pairs read") as report:
        done = clean(
            sources,
            columns,
            out,
            rules,
            exclude=exclude or [],
            models=models,
            tokenizer=tokenizer,
            strict=strict,
            report=report,
        )
    show_written(out, done)


@app.command(cls=Command)
def alter(
    file: Annotated[Path, typer.Argument(help="Translations, as in `bgt data prepare`.")],
    langs: Annotated[str, typer.Option(help="Languages of the columns, as in en,fr.")],
    of: Annotated[str, typer.Option(help="Language of the sentences to alter.")],
    out: OutOption,
) -> None:
    """Add an altered sentence to each pair as a third column: a negation changed, or two words exchanged.

    From such files, `bgt train bgt-bound --columns en,fr,altered:en` learns to distinguish altered sentences.
    """
    from bgt_core.data.alter import alter_rows

    done, kinds = alter_rows(file, langs.split(","), out, of=of)
    print(", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()), file=sys.stderr)
    show_written(out, done)


def sentence_models(language_model: Path | None, classifier: Path | None, keep: set[str]) -> dict[str, SentenceScore]:
    """Load the models of the scores that --keep names; UsageError unless a score and its model are given together."""
    given = {"perplexity": ("--language-model", language_model), "classifier": ("--classifier", classifier)}
    for name, (option, path) in given.items():
        if (name in keep) != (path is not None):
            raise UsageError(f"{name}=MIN..MAX and {option} go together: give both.", parameter="keep")
    models: dict[str, SentenceScore] = {}
    if language_model:
        from bgt_core.data.scores import Perplexity

        models["perplexity"] = Perplexity.of_file(language_model)
    if classifier:
        from bgt_core.encoders.distances import ReferenceProbability

        models["classifier"] = ReferenceProbability.load(classifier, "auto")
    return models


def show_written(out: Path, done: Cleaned) -> None:
    """Print the numbers of rows written and left out, with the reasons."""
    for example in done.skipped.examples:
        print(f"skipped {example}", file=sys.stderr)
    counts = {"kept": done.kept, **done.dropped, **done.skipped.counts}
    print(", ".join(f"{count:,} {what}" for what, count in counts.items() if count), file=sys.stderr)
    print(out)
