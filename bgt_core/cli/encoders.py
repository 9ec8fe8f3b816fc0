"""`bgt compare`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core.cli import options
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.evaluation.systems import Effect


def compare(
    data: Annotated[Path, typer.Argument(help="Pairs of sentences: TSV, Parquet, or X for X.en and X.fr.")],
    langs: Annotated[str, typer.Option(help="Languages of both columns, as in en,fr, or a:en,b:en; _ skips one.")],
    model: Annotated[
        list[str], typer.Option(help=f"{options.ENCODER}; two of them, and NAME=SPEC names one.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of pairs to show, the largest disagreements first.")] = 10,
    words: Annotated[
        bool, typer.Option("--each-word", help="Also show how much each word adds to both similarities of these pairs.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=2, help="At most this many pairs.", show_default="all")] = None,
    as_json: options.JsonOption = False,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
) -> None:
    """Rank pairs of sentences by how much two encoders disagree about their similarity.

    A pair's rank is the share of the other pairs that are less similar, in percent; the gap is the second encoder's
    rank less the first one's. With --each-word, each word and mark is left out in turn; its number is how much less
    similar the pair is without it.
    """
    from bgt_core.data.columns import parse_columns, read_columns
    from bgt_core.data.parallel import Skipped, read_pairs
    from bgt_core.evaluation.systems import disagreement, word_effects
    from bgt_core.tables import show

    if len(model) != 2:
        raise UsageError(f"{', '.join(model)}: expected two encoders", parameter="model")
    columns = langs.split(",")
    names = [column.partition(":")[0] for column in columns]
    both = tuple(parse_columns(read_columns(columns)).values())
    if len(both) != 2:
        raise UsageError(f"{langs}: expected two columns of text", parameter="langs")
    pairs = list(islice(read_pairs(data, names, Skipped(), strict=True), limit))
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    encoders = options.open_models(model, device, precision)
    compared = disagreement(encoders, left, right, both)
    first = [int(row) for row in compared.order[:top]]
    effects: dict[int, list[Effect]] = {row: [] for row in first}
    for row in first if words else []:
        try:
            effects[row] = word_effects(encoders, left[row], right[row], both)
        except UsageError as error:  # too many words; the other pairs have theirs
            print(f"pair {row + 1}: {error}", file=sys.stderr)
    if as_json:
        entries = [
            {
                "line": row + 1,
                "left": left[row],
                "right": right[row],
                "similarities": compared.similarities[row].tolist(),
                "ranks": compared.ranks[row].tolist(),
                "words": [{"side": each.side, "word": each.word, "effects": each.effects} for each in effects[row]],
            }
            for row in first
        ]
        document = {"schema": "bgt-compare/1", "models": list(encoders), "count": len(pairs), "pairs": entries}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    rows = [
        [
            *(left[row], right[row]),
            *(f"{value:.3f}" for value in compared.similarities[row]),
            *(f"{100 * value:.0f}" for value in compared.ranks[row]),
            f"{100 * compared.gaps[row]:+.0f}",
        ]
        for row in first
    ]
    show(["left", "right", *encoders, *(f"rank by {name}" for name in encoders), "gap"], rows, text=2)
    for row in filter(effects.get, first):
        print()
        show_words(list(encoders), (left[row], right[row]), effects[row])


def show_words(models: Sequence[str], sentences: tuple[str, str], effects: Sequence[Effect]) -> None:
    """A row for each word of two sentences."""
    from bgt_core.tables import show

    rows = [[sentences[each.side], each.word, *(f"{effect:+.3f}" for effect in each.effects)] for each in effects]
    show(["of", "word", *models], rows, text=2)
