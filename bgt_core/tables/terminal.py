"""A table on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def show(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> None:
    """Print a table on stdout, drawn if it is a terminal, else tab-separated; the first `text` columns are text."""
    if not sys.stdout.isatty():
        for row in (head, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Drawn

    table = Drawn()
    for number, name in enumerate(head):
        table.add_column(escape(name), justify="left" if number < text else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
