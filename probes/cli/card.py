"""Measure the figures of a model's card: `python -m probes.cli.card --sts DIR --retrieval FILE --sentences FILE`.

Prints one JSON document. A tf-idf bag of words stands beside the latents on STS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Annotated

import typer
from sklearn.feature_extraction.text import TfidfVectorizer

import bgt_core
import probes
from bgt_core.cli import options
from bgt_core.cli.errors import Command, run
from bgt_core.cli.options import split_names
from bgt_core.data.columns import split_langs
from bgt_core.data.languages import lang_code
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.embedder import Embedder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.encoders.publish import read_figures
from bgt_core.errors import DataError
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.sts_files import StsSet, read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.fidelity import Fidelity, HeldOut
from bgt_core.evaluation.tasks.minimal_pairs import LIKELIER, NAMED, RIGHT, ROLE_LANGS, MinimalPairs
from bgt_core.evaluation.tasks.retrieval import precision_at_1
from bgt_core.evaluation.tasks.sts import Sts, average, explain
from bgt_core.evaluation.tasks.transfer import SOURCES, TAKEN, Transfer
from bgt_core.evaluation.writing import CHRF_SCORE, KEPT, WRITTEN
from probes.data.sources import read_sentences
from probes.result import ProbeResult

Scores = dict[str, dict[str, float]]  # measure -> latent or baseline -> score
PROBED = {"Length": "length", "Punctuation": "punct-num"}  # name on the card -> task
YEARS = ("2012", "2013", "2014", "2015")
MINIMAL_PAIRS = 100  # or the number of sentences to generate, if that is smaller
STYLE_COLUMNS = ("written", "meaning of", "property", "style", SOURCES, TAKEN, CHRF_SCORE)
HEAD = ("written", "meaning of", "style of")
COLUMNS = ("task", "latent", "n_test", "accuracy", "ci_low", "ci_high")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def fitted_tfidf(sets: Sequence[StsSet]) -> ExternalEncoder:
    """A bag of words weighted by rarity, fitted on the very sentences it is scored on (no gold scores)."""
    bag = TfidfVectorizer().fit([text for data in sets for text in (*data.left, *data.right)])
    return ExternalEncoder("tf-idf", lambda texts, lang, latent: bag.transform(texts).toarray())


@app.command(cls=Command)
def card(
    sts_data: Annotated[Path, typer.Option("--sts", help="A folder of STS files, as `bgt evaluate sts` takes it.")],
    retrieval: Annotated[
        list[str],
        typer.Option(
            metavar="[LANGS=]FILE",
            help="Translations never trained on, a TSV of the model's languages, or of those named, as en-de=FILE; may "
            "be repeated. For retrieval both ways, and the sources and styles of generation.",
        ),
    ],
    sentences: Annotated[
        Path, typer.Option(help="Sentences of --lang never trained on, one per line: length and punctuation.")
    ],
    model: options.ModelOption = bgt_core.PRETRAINED,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of --sts and --sentences.", show_default="the model's first"),
    ] = None,
    years: Annotated[list[str] | None, typer.Option(help="SemEval years.", show_default=",".join(YEARS))] = None,
    about: Annotated[
        Path | None, typer.Option(help="JSON of further entries (data, licences, command), copied to the output.")
    ] = None,
    transfers: Annotated[int, typer.Option(help="Number of sentences to generate, of each kind.")] = 300,
    seed: options.SeedOption = 1,
) -> None:
    """Measure the figures of a model's card."""
    stated = read_figures(about) if about else {}
    bgt = bgt_core.load(model)
    own = lang or bgt.langs[0]
    wanted = split_names(years) or list(YEARS)
    sets = read_sets(sts_data, wanted, lang=own)
    files = [read_translations(text, bgt.langs) for text in retrieval]
    scores = sts_scores(bgt, sets, wanted)
    for langs, rows in files:
        scores |= retrieval_scores(bgt, langs, rows)
    rewritten = fidelity_records(bgt, files, transfers, seed)
    probed = {name: probes.run(bgt, task, read_sentences(sentences), lang=own) for name, task in PROBED.items()}
    counts = dict.fromkeys(str(len(rows)) for _, rows in files)
    protocol = {
        "STS": f"{explain(sets)}; the baseline is tf-idf",
        "Retrieval": f"precision at 1 among {' or '.join(counts)} translations",
        "Fidelity": f"at most {transfers} of the retrieval sentences, beam 4, chrF and BLEU of sacrebleu, lower-cased; "
        f"see `bgt evaluate fidelity`",
        "Style taken over": "at most 150 of the retrieval sentences for each value; see `bgt evaluate transfer`",
        "Probes": "test accuracy of logistic regression, 5 splits; the baseline is the majority class",
    }
    document = {
        "scores": scores | probe_scores(bgt, probed),
        "protocol": [{"score": score, "how": how} for score, how in protocol.items()],
        "probes": [{name: vars(row)[name] for name in COLUMNS} for result in probed.values() for row in result.rows],
        **rewritten,
        **stated,
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


Translations = tuple[list[str], list[tuple[str, ...]]]  # languages, and rows with a sentence in each


def read_translations(text: str, langs: Sequence[str]) -> Translations:
    """FILE with a column for each of `langs`, or en-de=FILE with one for each language named."""
    name, _, file = text.rpartition("=")
    named = list(map(lang_code, split_langs(name)))
    if name and set(named) <= set(langs) and not Path(text).exists():
        columns = named
    else:
        columns, file = list(langs), text
    return columns, list(read_pairs(Path(file), columns, Skipped()))


def sts_scores(bgt: Embedder, sets: Sequence[StsSet], years: Sequence[str]) -> Scores:
    """Of each latent, and of tf-idf."""
    result = evaluate(Sts(), {"model": bgt, "baseline": fitted_tfidf(sets)}, sets, resamples=100)
    scores = {
        name: average(result, system) for name, system in zip([*bgt.latents, "baseline"], result.systems, strict=True)
    }
    span = f"{years[0]}-{years[-1]}" if [*years] == [*YEARS] else ", ".join(years)
    return {f"STS {span}, Pearson x 100": scores}


def retrieval_scores(bgt: Embedder, langs: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Scores:
    """Of each language to each other."""
    vectors = {lang: bgt.embed([row[column] for row in rows], lang=lang) for column, lang in enumerate(langs)}
    return {
        f"Retrieval {source} to {target}, %": {"semantic": 100 * precision_at_1(vectors[source], vectors[target])}
        for source, target in permutations(langs, 2)
    }


def fidelity_records(
    bgt: Embedder, files: Sequence[Translations], limit: int, seed: int
) -> dict[str, list[dict[str, str]]]:
    """Run `bgt evaluate fidelity` and `transfer`, each file's first language with each other one, and
    `minimal-pairs`."""
    records: dict[str, list[dict[str, str]]] = {"fidelity": [], "kept": [], "transfer": [], "roles": []}
    for langs, rows in files:
        for other in langs[1:]:
            count = min(limit, len(rows))
            chosen = [rows[number * len(rows) // count] for number in range(count)]
            columns = {lang: [row[langs.index(lang)] for row in chosen] for lang in (langs[0], other)}
            langs_of = ",".join(columns)
            written = evaluate(Fidelity(langs=langs_of), bgt, HeldOut(columns), resamples=1_000, seed=seed)
            records["fidelity"] += rows_of(written, [*HEAD, "by", *WRITTEN])
            records["kept"] += rows_of(written, [*HEAD, "by", *KEPT])
            every = {lang: [row[langs.index(lang)] for row in rows] for lang in columns}
            with suppress(DataError):  # too few pairs
                taken = evaluate(Transfer(langs=langs_of), bgt, every, resamples=1_000, seed=seed)
                records["transfer"] += rows_of(taken, STYLE_COLUMNS)
    if of_grammar := [lang for lang in ROLE_LANGS if any(lang in langs for langs, _ in files)]:
        task = MinimalPairs(langs=",".join(of_grammar), count=min(limit, MINIMAL_PAIRS))
        roles = evaluate(task, bgt, task.load([], seed=seed), resamples=1_000, seed=seed)
        pairs = {key.roles: str(key.pairs) for key in roles.scores}
        lines = rows_of(roles, [*HEAD, "roles", "pairs", NAMED, RIGHT, LIKELIER])
        records["roles"] = [line | {"pairs": pairs[line["roles"]]} for line in lines]
    return {name: rows for name, rows in records.items() if rows}


def rows_of(result: Result, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return these columns of a result's table, the system as "by"; empty if a column does not exist."""
    table = result.table()
    names = ["by" if name == "system" else name for name in table.columns]
    lines = [dict(zip(names, line, strict=True)) for line in table.lines()]
    return [{name: line.get(name, "") for name in columns} for line in lines]


def probe_scores(bgt: Embedder, probed: Mapping[str, ProbeResult]) -> Scores:
    """Accuracies in percent of each latent and of the majority."""
    table: Scores = {}
    for task, result in probed.items():
        accuracy = {row.latent: 100 * row.accuracy for row in result.rows}
        table[f"{task} probe, accuracy %"] = {
            **{name: accuracy[name] for name in bgt.latents},
            "baseline": accuracy["majority"],
        }
    return table


def main() -> None:
    """Measure and print; a foreseeable error is one line and an exit code."""
    run(app, "probes.cli.card")


if __name__ == "__main__":
    main()
