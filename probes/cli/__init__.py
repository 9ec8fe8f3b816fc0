"""`bgt-probe`: parse, check, call, print.

The table goes to stdout, progress to stderr. Exit codes as in `bgt`: 0 done, 1 internal error, 2 usage, 3 something
needed is absent, 4 invalid data or checkpoint; and 5 finished but for some cells, 6 out of memory, 7 a score that
--fail-on names, 130 interrupted; what was measured is kept.
"""

from __future__ import annotations

import typer

from bgt_core.cli.errors import Command, run
from probes.cli import cache
from probes.cli.languages import compare_languages
from probes.cli.probe import probe

app = typer.Typer(add_completion=True, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True)(probe)
app.command("compare-languages", cls=Command)(compare_languages)
app.add_typer(cache.app, name="cache")


def main() -> None:
    """The `bgt-probe` command."""
    run(app, "bgt-probe")
