"""Tables on stdout: drawn on a terminal, tab-separated elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def show(head: Sequence[str], rows: Sequence[Sequence[str]], text: int = 1) -> None:
    """Print a table; the first `text` columns are text, the others numbers."""
    if not sys.stdout.isatty():
        for row in (head, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number < text else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
