"""`bgt-probe`: parse, check, call, print.

The table goes to stdout, progress to stderr. Exit codes as in `bgt`: 0 done, 1 internal error, 2 usage, 3 a file,
device or library is absent, 4 invalid data or checkpoint; and 5 some cells failed, 6 out of memory, 130 interrupted.
Finished cells are kept.
"""

from __future__ import annotations

import typer

from bgt_core.cli.errors import Command, Group, run
from probes.cli.languages import compare_languages
from probes.cli.probe import probe, prune

app = typer.Typer(add_completion=True, pretty_exceptions_enable=False, cls=Group)
app.callback(invoke_without_command=True, cls=Group)(probe)
app.command("compare-languages", cls=Command)(compare_languages)
app.command("prune", cls=Command)(prune)


def main() -> None:
    """Run `bgt-probe`."""
    run(app, "bgt-probe")
