"""The program `bgt`. A command parses its options, calls the library and prints the result.

Results go to stdout, progress and warnings to stderr. torch is imported only when a command runs, so that `bgt --help`
starts fast. Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 a file, device or library is missing, 4 invalid data
or checkpoint, 5 some of several training runs failed, 6 out of memory, 8 training diverged, 130 interrupted.
"""

from typing import Annotated

import typer

from bgt_core import __version__
from bgt_core.cli import data, diagnose, evaluate, generate, models, neighbours, split, text, train
from bgt_core.cli.errors import Command, run

program = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
program.add_typer(data.app, name="data")
program.add_typer(evaluate.app, name="evaluate")
for command in (
    train.train, text.embed, text.translate, neighbours.mine, split.split, neighbours.retrieve_similar,
    generate.generate, diagnose.diagnose, models.info, models.export, models.app,
):  # fmt: skip
    program.command(cls=Command)(command)


def main() -> None:
    """Run the program `bgt`."""
    run(program, "bgt")


def version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@program.callback()
def bgt(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Bilingual Generative Transformer: sentence embeddings with one latent for meaning and one for style."""
