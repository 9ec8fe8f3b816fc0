"""`bgt data`: download, prepare, alter and backtranslate training data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from bgt_core.cli import options
from bgt_core.cli.errors import Command
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.data.clean import Cleaned
    from bgt_core.data.scores import SentenceScore

app = typer.Typer(no_args_is_help=True, help="Download and prepare training data.")

OutOption = Annotated[
    Path, Option(help="Output file, .tsv, .tsv.gz, .tsv.xz or .tsv.zst; OUT.json records its sources and settings.")
]


@app.command(cls=Command)
def download(
    name: Annotated[
        str | None,
        Argument(help="Name of a data set, or opus:NAME for any corpus of OPUS. Without a name, list all data sets."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Output folder; the file bgt-data.json in it lists the files and their sources.")
    ] = None,
    pair: Annotated[
        str | None, Option(help="Two languages, as in en-fr; the columns of the output have this order.")
    ] = None,
    release: Annotated[str | None, Option(help="Release of a corpus, as in v2018.")] = None,
) -> None:
    """Download a data set and convert it to a file that `bgt train` reads.

    Without a name, list all data sets with their licences.
    """
    from bgt_core.data import fetch
    from bgt_core.data.fetch import SOURCES, choose
    from bgt_core.tables import show

    if name is None:
        rows = [[each.name, each.release, each.pairs, each.licence, each.what] for each in SOURCES]
        show(["name", "release", "pairs", "licence", "content"], rows, text=5)
        print(
            "The addresses were copied from public code; since then, a data set may have moved. The SHA-256 of the "
            "first download is stored, and later downloads must have the same hash. More corpora: https://opus.nlpl.eu",
            file=sys.stderr,
        )
        return
    choice = choose(name, pair=pair, release=release)
    if out is None:
        raise UsageError("is needed: give the folder in which to store the download.", parameter="out")
    print(f"{choice.stem}; licence: {choice.source.licence}", file=sys.stderr)
    for address in choice.archives:
        print(f"  {address}{'' if address.startswith('https:') else ' (without encryption)'}", file=sys.stderr)
    with options.rows_bar("downloading") as report:
        done = fetch.download(choice, out, report=report)
    for path in done.files:
        print(path)
    if not done.new:
        print("nothing to do: the files have been downloaded before", file=sys.stderr)
    if left_out := options.counted(done.left_out):
        print(f"left out: {left_out}", file=sys.stderr)


@app.command(cls=Command)
def prepare(
    sources: Annotated[list[Path], Argument(metavar="IN...", help=f"Translations: {options.PAIRS}.")],
    langs: Annotated[
        str,
        Option(
            help="Languages of the columns, as in en,fr; or names and languages, as in "
            "reference:en,translation:en,cost:label, where label marks a column of numbers."
        ),
    ],
    out: OutOption,
    min_length: Annotated[int, Option(help="Minimum length of each sentence, in words.")] = 1,
    max_length: Annotated[int, Option(help="Maximum length of each sentence, in words.")] = 100,
    max_ratio: Annotated[float, Option(help="Maximum ratio of the lengths of a row's sentences.")] = 9.0,
    tokenizer: Annotated[
        Path | None, Option(help="A SentencePiece model; lengths are then counted in its tokens.")
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        Option(help="A file or folder of evaluation sentences; rows that contain them are dropped. May be repeated."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="SCORE=MIN..MAX",
            help="Keep only rows with a score in this range, as in cost=0..2. The range includes MIN and MAX, and "
            "MIN or MAX may be left out. Scores of the translation: words (number of words; 100 if there are more), "
            "cost (the column of numbers), overlap-1, overlap-2, overlap-3 (share of its words, word pairs or triples "
            "that are in the reference), bleu (0 to 1), perplexity, classifier. May be repeated.",
        ),
    ] = None,
    language_model: Annotated[
        Path | None,
        Option(
            help="For the score perplexity: text on which a 3-gram model is trained, one sentence per line or in the "
            'first column. Needs "bgt\\[lm]".'
        ),
    ] = None,
    classifier: Annotated[
        Path | None,
        Option(
            help="For the score classifier: a run of `bgt train reference-classifier`. The score is the probability "
            "that a person wrote the sentence."
        ),
    ] = None,
    first_of_reference: Annotated[
        bool,
        Option("--first-of-reference", help="Keep one row per reference: the first that passes all other filters."),
    ] = False,
    max_pairs: Annotated[int | None, Option(help="Keep a random sample of at most this many pairs.")] = None,
    strict: options.StrictOption = False,
) -> None:
    """Normalise and filter translations; drop repeated rows and evaluation sentences.

    Lengths are in words, or in characters if a language does not separate words by spaces.
    """
    from bgt_core.data.clean import CleaningRules, clean, length_unit
    from bgt_core.data.parallel import check_table
    from bgt_core.data.scores import ScoreRange

    check_table(out)  # fail before a model is loaded, which takes long
    columns = langs.split(",")
    ranges = tuple(map(ScoreRange.parse, keep or []))
    models = sentence_models(language_model, classifier, {each.score for each in ranges})
    unit = "tokens" if tokenizer else length_unit(columns)
    rules = CleaningRules(
        min_length, max_length, max_ratio, unit, max_pairs, keep=ranges, first_of_reference=first_of_reference
    )
    with options.rows_bar("pairs read") as report:
        done = clean(
            sources, columns, out, rules, exclude=exclude or [], models=models, tokenizer=tokenizer, strict=strict,
            report=report,
        )  # fmt: skip
    show_written(out, done)


@app.command(cls=Command)
def alter(
    file: Annotated[Path, Argument(help=f"Translations: {options.PAIRS}.")],
    langs: Annotated[str, Option(help="Languages of the columns, as in en,fr.")],
    of: Annotated[str, Option(help="Language of the sentences to alter.")],
    out: OutOption,
) -> None:
    """Add a third column to translations: sentences in which a negation is added or removed, or two words are swapped.

    To train a model that distinguishes altered sentences, use bgt train bgt-bound --columns en,fr,altered:en.
    """
    from bgt_core.data.alter import alter_rows

    done, kinds = alter_rows(file, langs.split(","), out, of=of)
    print(", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()), file=sys.stderr)
    show_written(out, done)


def sentence_models(language_model: Path | None, classifier: Path | None, keep: set[str]) -> dict[str, SentenceScore]:
    """Load the models that the scores in --keep need. UsageError for a missing model, or one that no score needs."""
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
    """Print the path of the output file, and the numbers of rows that were kept, dropped and skipped."""
    options.note_rows({"kept": done.kept, **done.dropped}, done.skipped)
    print(out)


@app.command(cls=Command)
def backtranslate(
    source: Annotated[Path, Argument(metavar="IN", help=f"Translations: {options.PAIRS}.")],
    langs: Annotated[str, Option(help="Languages of the columns, as in en,fr; _ skips a column.")],
    out: Annotated[
        Path,
        Option(
            help="Output file (.tsv, .tsv.gz, .tsv.xz, .tsv.zst): reference, translation, cost, and row number in IN."
        ),
    ],
    model: options.TranslatorOption,
    into: Annotated[
        str | None,
        Option(
            help="Target language. The column in this language has the references; the other column is translated.",
            show_default="the first of --langs",
        ),
    ] = None,
    count: Annotated[int, Option("--n-best", help="Number of translations per sentence, one per row, best first.")] = 1,
    beam: options.BeamOption = 5,
    max_length: options.MaxLengthOption = 100,
    shard: options.ShardOption = None,
    strict: options.StrictOption = False,
    device: options.DeviceOption = "auto",
    precision: options.WeightsOption = "auto",
) -> None:
    """Make paraphrases from translations: translate one column into the language of the other column.

    The output's column `cost` is the negative log-likelihood of the translation, in nats per token. If the output file
    is complete, nothing is computed. To split a long text among several processes, use --shard. To train on the pairs:
    bgt train ... --columns a:en,b:en --data a,b,_,_=OUT.
    """
    from bgt_core.bulk import check_output
    from bgt_core.bulk.backtranslation import backtranslate as translate_file
    from bgt_core.data.parallel import check_table
    from bgt_core.encoders import load
    from bgt_core.generation.generate import BeamTranslator

    numbers = options.parse_shard(shard)
    pair = [lang for lang in langs.split(",") if lang != "_"]
    if len(pair) != 2 or not all(pair) or len(set(pair)) != 2:
        raise UsageError(f"{langs}: expected two languages, as in en,fr.", parameter="langs")
    into = into or pair[0]
    if into not in pair:
        raise UsageError(f"{into}: expected one of --langs, {' or '.join(pair)}.", parameter="into")
    check_table(out)  # fail before the model is loaded, which takes long
    check_output(out)
    translator = BeamTranslator(
        load(model, device, precision), source_lang=pair[1 - pair.index(into)], lang=into, beam=max(beam, count),
        count=count, max_length=max_length,
    )  # fmt: skip
    with options.rows_bar(out.name) as report:
        done = translate_file(
            translator, source, out, langs=langs.split(","), into=into, shard=numbers, strict=strict, report=report
        )
    counts = {"translations": done.rows, "sentences": done.sentences, "without a translation": done.untranslated}
    options.note_rows(counts, done.skipped)
    print(done.path)
