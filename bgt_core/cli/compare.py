"""`bgt data compare`."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.errors import DataError, UsageError

if TYPE_CHECKING:
    from bgt_core.data.filters.scores import SentenceScore

WordsOption = Annotated[
    str, typer.Option(help="Words of scores end at spaces; or 13a: punctuation marks are words too, as in BLEU.")
]
LanguageModelOption = Annotated[
    Path | None,
    typer.Option(help='References, one per line or in the first column, that train a 3-gram model; needs "bgt\\[lm]".'),
]
ClassifierOption = Annotated[
    Path | None, typer.Option(help="A run of `bgt train reference-classifier`: P(reference) of each sentence.")
]


def compare(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="References and a translation of each.")],
    columns: Annotated[
        str, typer.Option(help="Columns by name and language, the reference first; cost:label if it has costs.")
    ] = "reference:en,translation:en",
    words: WordsOption = "spaces",
    idf: Annotated[
        Path | None,
        typer.Option(help="A text, one document per line, to count words in.", show_default="all the file's sentences"),
    ] = None,
    language_model: LanguageModelOption = None,
    classifier: ClassifierOption = None,
    device: options.DeviceOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Compare references with their translations: entropy, repetition, rare words, length, overlap, BLEU.

    With a classifier: also how well it tells them apart, and Spearman's rho x 100 of its score with the other scores.
    """
    import numpy as np

    from bgt_core.data.columns import LABEL, parse_columns, read_columns
    from bgt_core.data.numbers import no_number, number
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.data.textfile import text_lines
    from bgt_core.evaluation.backtranslation import compare as compare_sides
    from bgt_core.tables import show

    names = [column.partition(":")[0] for column in columns.split(",")]  # all columns of the file, skipped ones too
    langs = parse_columns(read_columns(columns.split(",")))
    texts = [index for index, lang in enumerate(langs.values()) if lang != LABEL]
    labels = [index for index, lang in enumerate(langs.values()) if lang == LABEL]
    if len(texts) != 2:
        raise UsageError(f"{columns}: expected two of text, the reference and its translation.", parameter="columns")
    cells = list(zip(*read_pairs(path, names, Skipped(), strict=True), strict=True))
    costs = np.array([number(cell) for index in labels for cell in cells[index]]) if labels else None
    if costs is not None and np.isnan(costs).any():
        line = int(np.flatnonzero(np.isnan(costs))[0])
        raise DataError(f"{path}:{line + 1}: the {list(langs)[labels[0]]} {no_number(cells[labels[0]][line])}.")
    comparison = compare_sides(
        *(cells[index] for index in texts),
        words=words,
        costs=costs,
        documents=(line for _, line in text_lines(idf)) if idf else None,
        models=sentence_models(language_model, classifier, words, device),
    )
    if as_json:
        print(json.dumps({"schema": "bgt-data-compare/1", "file": str(path), **comparison.as_dict()}, indent=2))
        return
    table = comparison.table()
    show(table.columns, table.lines())


def sentence_models(
    language_model: Path | None, classifier: Path | None, words: str, device: str, keep: Collection[str] | None = None
) -> dict[str, SentenceScore]:
    """Return the scores of these two options by name; UsageError if `keep` is given and names others."""
    given = {"perplexity": ("--language-model", language_model), "classifier": ("--classifier", classifier)}
    for name, (option, path) in given.items():
        if keep is not None and (name in keep) != (path is not None):
            text = f"{name}=MIN..MAX and {option} go together: give both."
            raise UsageError(text, parameter="keep")
    models: dict[str, SentenceScore] = {}
    if language_model:
        from bgt_core.data.filters.perplexity import Perplexity
        from bgt_core.data.filters.scores import word_tokenizer

        models["perplexity"] = Perplexity.of_file(language_model, word_tokenizer(words))
    if classifier:
        from bgt_core.encoders.reference import ReferenceProbability

        models["classifier"] = ReferenceProbability.load(classifier, device)
    return models
