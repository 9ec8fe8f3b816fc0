"""`bgt data alter`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli import options
from bgt_core.cli.data import show_written


def alter(
    file: Annotated[Path, typer.Argument(help="Translations, as in `bgt data prepare`.")],
    langs: Annotated[str, typer.Option(help="Languages of the columns, as in en,fr.")],
    of: Annotated[str, typer.Option(help="Language of the sentences to alter.")],
    out: Annotated[Path, typer.Option(help="Output file, as in `bgt data prepare`; a third column is altered.")],
    seed: options.SeedOption = 0,
    strict: options.StrictOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Add an altered sentence to each pair: a negation changed, or two words exchanged.

    `bgt train bgt-bound --columns en,fr,altered:en` learns from such files to tell them from translations.
    """
    from bgt_core.data.alter import alter_rows

    done, kinds = alter_rows(file, langs.split(","), out, of=of, seed=seed, strict=strict)
    print(", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()), file=sys.stderr)
    show_written(out, done, "bgt-data-alter/1" if as_json else None)
