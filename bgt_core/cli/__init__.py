"""`bgt`: data, train, embed, translate, mine, split, evaluate, retrieve-similar, generate, diagnose, info, export, app.

Each command has a file, which parses, calls the library and prints. `errors` prints the library's errors as one line.

Results go to stdout, progress and warnings to stderr. torch is imported when a command runs, not
before. Exit codes: 0 done, 1 internal error, 2 usage, 3 something needed is absent, 4 invalid data or
checkpoint, 5 some of many trainings failed, 6 out of memory, 8 a training diverged, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bgt_core import __version__
from bgt_core.cli import app, data, diagnose, embed, evaluate, generate, mine, models, similar, split, train
from bgt_core.cli.errors import Command, run
from bgt_core.cli.translate import backtranslate, translate

program = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
data.app.command(cls=Command)(backtranslate)
program.add_typer(data.app, name="data")
program.add_typer(evaluate.app, name="evaluate")
for command in (
    train.train,
    embed.embed,
    translate,
    mine.mine,
    split.split,
    similar.retrieve_similar,
    generate.generate,
    diagnose.diagnose,
    models.info,
    models.export,
    app.app,
):
    program.command(cls=Command)(command)


def main() -> None:
    """The `bgt` command."""
    run(program, "bgt")


def version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@program.callback()
def bgt(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Bilingual Generative Transformer: embeddings that keep meaning and style apart."""
