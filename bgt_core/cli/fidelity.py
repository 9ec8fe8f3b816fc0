"""`bgt fidelity`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import (
    CsvOption,
    DeviceOption,
    JsonOption,
    LatexOption,
    ModelOption,
    ParquetOption,
    check_files,
    load,
    on_stdout,
)
from bgt_core.errors import DataError, UsageError

if TYPE_CHECKING:
    from bgt_core.evaluation.fidelity import Fidelity

ROLE_PAIRS = 100
Pairs = Sequence[tuple[str, ...]]


def fidelity(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Translations never trained on: TSV, Parquet, or X for X.en and X.fr."),
    ],
    langs: Annotated[str, typer.Option(help="The languages of the columns, as in en,fr.")],
    model: ModelOption = PRETRAINED,
    train: Annotated[
        Path | None,
        typer.Option(
            help="Translations it was trained on: a random one, and the one of nearest meaning, are baselines.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="At most this many pairs, evenly spaced.")] = 300,
    min_words: Annotated[int, typer.Option("--min-words", help="Of the first language.")] = 1,
    max_words: Annotated[
        int | None, typer.Option("--max-words", help="Of the first language.", show_default="any")
    ] = None,
    roles: Annotated[
        int | None,
        typer.Option(
            help="Minimal pairs of the built-in grammar, whose roles are swapped.",
            show_default=f"as many as pairs, at most {ROLE_PAIRS}",
        ),
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 4,
    cased: Annotated[
        bool, typer.Option("--cased", help="Compare text as it is; by default it is lower-cased first.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of styles, random sentences, minimal pairs and resamples.")] = 0,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1_000,
    csv: CsvOption = None,
    latex: LatexOption = None,
    parquet: ParquetOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Write sentences anew from their latents and measure what is kept, with 95% intervals.

    From both of its own latents; with the meaning of the other language in the manner of the reference and of a
    random sentence; with its own meaning in the manner of a random sentence. Length and mark are compared with the
    style, all else with the reference.
    """
    from bgt_core.evaluation import fidelity as fidelities
    from bgt_core.generation.options import Beam
    from bgt_core.generation.writer import Writer
    from bgt_core.tables import save

    files = {"csv": csv, "latex": latex, "parquet": parquet}
    check_files(files, as_json)
    for name, value, least in (
        ("--limit", limit, 2),
        ("--roles", roles or 0, 0),
        ("--seed", seed, 0),
        ("--resamples", resamples, 100),
    ):
        if value < least:
            raise UsageError(f"{name} {value}: must be at least {least}.")
    pair = tuple(langs.split(","))
    if len(set(pair)) != 2 or not all(pair):
        raise UsageError(f"--langs {langs}: expected two languages, as in en,fr.")
    pairs = chosen(read(file, pair), limit, min_words, max_words)
    trained = dict(zip(pair, zip(*read(train, pair), strict=True), strict=True)) if train else None
    result = fidelities.fidelity(
        Writer(load(model, device), Beam(beam)),
        dict(zip(pair, zip(*pairs, strict=True), strict=True)),
        train=trained,
        role_pairs=min(ROLE_PAIRS, len(pairs)) if roles is None else roles,
        seed=seed,
        lowercase=not cased,
        resamples=resamples,
        say=say,
    )
    note = about(result, beam, cased, seed, trained is not None)
    save(result.long_table(), files, note)
    say(note)
    if as_json:
        settings = {"langs": pair, "beam": beam, "cased": cased, "seed": seed, "resamples": resamples}
        print(json.dumps({"schema": "bgt-fidelity/1", **settings, **result.as_dict()}, indent=2, ensure_ascii=False))
    elif not on_stdout(files):
        show(result)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def read(file: Path, langs: Sequence[str]) -> Pairs:
    """The pairs of a file, in the order of the languages."""
    from bgt_core.data.parallel import Skipped, read_pairs

    return list(read_pairs(file, langs, Skipped(), strict=True))


def chosen(pairs: Pairs, limit: int, least: int, most: int | None) -> Pairs:
    """Those with that many words in the first language, at most `limit`, evenly spaced."""
    fitting = [pair for pair in pairs if least <= len(pair[0].split()) <= (most or len(pair[0]))]
    if len(fitting) < 2:
        raise DataError(f"{len(fitting)} of {len(pairs)} pairs have --min-words to --max-words; expected 2 or more.")
    count = min(limit, len(fitting))
    return [fitting[row * len(fitting) // count] for row in range(count)]


def about(result: Fidelity, beam: int, cased: bool, seed: int, trained: bool) -> str:
    """How it was measured, in a line or two."""
    case = "cased" if cased else "lower-cased"
    unread = f" Numbers of {result.unread:,} pairs can't be read and are left out." if result.unread else ""
    left_out = "" if trained else "\nWithout --train, no training sentences stand beside them as baselines."
    return (
        f"{result.pairs:,} pairs, beam {beam}, seed {seed}; chrF and BLEU of sacrebleu, {case}. Length and mark are "
        "compared with the style, the rest with the reference; what is kept, where source and reference agree (--json "
        f"says in how many).{unread}{left_out}"
    )


def show(result: Fidelity) -> None:
    """Three tables: what is written beside its reference and style, what is kept, roles."""
    from bgt_core import tables
    from bgt_core.evaluation.fidelity.measures import KEPT, WRITTEN

    for number, table in enumerate((result.table(WRITTEN), result.table(KEPT), result.role_table())):
        if table.rows:
            print(end="\n" if number else "")
            tables.show(table.columns, table.lines(), text=4)
