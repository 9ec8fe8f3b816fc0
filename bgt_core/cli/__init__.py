"""`bgt`: data, train, embed, mine, sts, retrieve, reproduce, generate, diagnose, info, export, push.

A file a command: it parses, checks, calls and prints.

Results go to stdout, progress and warnings to stderr. torch is imported when a command runs, not
before. Exit codes: 0 done, 1 internal error, 2 usage, 3 something needed is absent, 4 invalid data or
checkpoint, 5 some of many trainings failed, 130 interrupted with the state saved.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bgt_core import __version__
from bgt_core.cli import data, diagnose, embed, export, generate, info, mine, reproduce, retrieve, sts, train
from bgt_core.errors import BgtError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(data.app, name="data")
for command in (
    train.train,
    embed.embed,
    mine.mine,
    sts.sts,
    retrieve.retrieve,
    reproduce.reproduce,
    generate.generate,
    diagnose.diagnose,
    info.info,
    export.export,
    export.push,
):
    app.command()(command)


def main() -> None:
    """The `bgt` command: a foreseeable error is one line and an exit code."""
    try:
        app()
    except BgtError as error:
        print(f"bgt: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader left, as `head` does
        sys.stderr.close()
        sys.exit(0)


def version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Bilingual Generative Transformer: embeddings that keep meaning and manner apart."""
