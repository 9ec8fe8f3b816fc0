"""`bgt-probe compare-languages`: the separation against the distance to English."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.data.columns import lang_codes
from bgt_core.errors import UsageError

ABOUT = """\
Gaps: semantic minus language, in points. Distances to English: weeks to learn (Foreign Service Institute), syntax
(URIEL), the paper's order; letters and tokens are 1 minus the overlap measured in --pairs. rho is Spearman's, its
interval of resampled languages and of the gaps' own errors; p by permutation of the languages, Holm over the table. The
paper's gaps are those of its table 3, without errors."""


def compare_languages(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULTS]...",
            help="Output of `bgt-probe --out FILE.parquet` for models with both latents.",
            show_default="the paper's table alone",
        ),
    ] = None,
    sts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LANG=FILE",
            help="Output of `bgt evaluate sts --json` for the model of English and LANG, or for sentences in LANG.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(metavar="en-LANG=FILE", help="Translations to measure overlaps in.", show_default=False),
    ] = None,
    vocab_size: Annotated[
        int,
        typer.Option(
            help="Vocabulary size of the tokenizer trained on both sides of --pairs; smaller for small files.", min=10
        ),
    ] = 8_000,
    as_json: options.JsonOption = False,
) -> None:
    """Judge the paper's four claims on language distance, on its own numbers and on yours."""
    from bgt_core.tables import show
    from probes.results.languages import (
        FSI_WEEKS,
        PAPER_ORDER,
        URIEL_SYNTAX,
        judged_table,
        language_table,
        paper_gaps,
        probe_gaps,
        sts_gap,
    )
    from probes.results.store import read_cells

    scored = [sts_gap(*named(text, "sts", "fr=FILE")) for text in sts or []]
    cells = [cell for path in results or [] for cell in read_cells(path)]
    gaps = [*probe_gaps(cells), *scored]
    if results and not gaps:
        raise UsageError(
            f"{results[0]}: no result compares both latents of a model of English and another language on English "
            "sentences; probe such a model with --lang en."
        )
    distances: dict[str, Mapping[str, float]] = {"weeks": FSI_WEEKS, "syntax": URIEL_SYNTAX, "paper": PAPER_ORDER}
    distances |= measured(pairs or [], vocab_size)
    table = judged_table(gaps, distances)
    print(ABOUT, file=sys.stderr)
    if as_json:
        document = {
            "schema": "bgt-languages/1",
            "about": ABOUT,
            "distances": distances,
            "gaps": [gap._asdict() for gap in gaps],
            "claims": table.records(),
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    by_language = language_table(gaps or paper_gaps(), distances)
    show(by_language.columns, by_language.lines(), text=1)
    print()
    show(table.columns, table.lines(), text=3)


def named(text: str, parameter: str, example: str) -> tuple[str, Path]:
    """ "fr=FILE" -> fr, FILE."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise UsageError(f"{text}: expected {example}.", parameter=parameter)
    return lang_codes(name), Path(file)


def measured(pairs: Sequence[str], vocab_size: int) -> Mapping[str, Mapping[str, float]]:
    """Distances by letters and by tokens for each language with a file; empty without files."""
    from bgt_core.data.columns import split_langs
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.data.words import SENTENCES, letter_overlap, piece_overlap

    letters, tokens = {}, {}
    for text in pairs:
        columns, file = named(text, "pairs", "en-fr=FILE")
        langs = split_langs(columns)
        if len(langs) != 2 or "en" not in langs:
            raise UsageError(f"{text}: expected English and one other language, as in en-fr=FILE.", parameter="pairs")
        (other,) = (lang for lang in langs if lang != "en")
        rows = list(read_pairs(file, langs, Skipped()))
        count = min(SENTENCES, len(rows))
        first, second = zip(*(rows[number * len(rows) // count] for number in range(count)), strict=True)
        letters[other], tokens[other] = 1 - letter_overlap(first, second), 1 - piece_overlap(first, second, vocab_size)
    return {"letters": letters, "tokens": tokens} if letters else {}
