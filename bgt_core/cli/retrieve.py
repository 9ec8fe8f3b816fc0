"""`bgt retrieve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import DeviceOption, JsonOption, open_models
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.evaluation.retrieval import Share


def retrieve(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Translations: TSV, Parquet, or X for X.en and X.fr."),
    ],
    langs: Annotated[str, typer.Option(help="The languages of the columns, as in en,fr.")],
    margin: Annotated[
        str | None,
        typer.Option(help="ratio or distance: search by margin too, and mine the pairs as `bgt mine` does."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Neighbours that a margin is relative to.")] = 4,
    model: Annotated[
        list[str] | None,
        typer.Option(help="As in `bgt sts`; may be repeated.", show_default="the model that ships"),
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Count sentences whose nearest neighbour in the other language is their translation, with 95% intervals."""
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.evaluation.retrieval import retrieve as retrieve_pairs
    from bgt_core.mining.margin import check
    from bgt_core.tables import show

    pair = tuple(langs.split(","))
    if len(pair) != 2 or not all(pair):
        raise UsageError(f"--langs {langs}: expected two languages, as in en,fr.")
    if margin:
        check(k, margin, "max")
    texts = {path: list(zip(*read_pairs(path, pair, Skipped(), strict=True), strict=True)) for path in files}
    results = [
        (file, name, result)
        for name, encoder in open_models(model or [str(PRETRAINED)], device).items()
        for file, (left, right) in texts.items()
        for result in retrieve_pairs(encoder, left, right, langs=pair, margin=margin, k=k)
    ]
    for file, columns in texts.items():
        copies = [f"{len(text) - len(set(text))} in {lang}" for text, lang in zip(columns, pair, strict=True)]
        print(f"{file}: {len(columns[0]):,} pairs; sentences that repeat one: {', '.join(copies)}", file=sys.stderr)
    print("Precision at 1, strict: a copy of the translation on another line is a miss.", file=sys.stderr)
    if as_json:
        documents = [{"file": str(file), "model": name, **result.as_dict()} for file, name, result in results]
        print(json.dumps({"schema": "bgt-retrieve/1", "k": k if margin else None, "results": documents}, indent=2))
        return
    head = ["file", "model", "by", "pairs", f"{pair[0]} to {pair[1]} %", f"{pair[1]} to {pair[0]} %"]
    rows = [
        [file.name, name, result.by, str(len(result.forward)), *map(percent, result.shares)]
        + ([f"{100 * result.mined.f1:.1f}" if result.mined else ""] if margin else [])
        for file, name, result in results
    ]
    show([*head, *(["mining F1 %"] if margin else [])], rows)


def percent(share: Share) -> str:
    """As in 86.5 [84.2, 88.5]."""
    return f"{100 * share.value:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"
