"""`bgt app`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import bgt_core
from bgt_core.errors import NotFound, UsageError

PACKAGE = Path(bgt_core.__file__).parent
# In a checkout the app is beside the package. A wheel has it inside, so that it installs no package named `app`.
PLACES = (PACKAGE.parent / "app" / "main.py", PACKAGE / "bundled" / "app" / "main.py")


def app(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A checkpoint or run, a folder of them, or any encoder, beside the models that ship. May be repeated."
        ),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="Data: sentences or translations, as en,fr=FILE. May be repeated.")
    ] = None,
    results: Annotated[
        list[Path] | None, typer.Option(help="A file or folder of `bgt-probe` results. May be repeated.")
    ] = None,
    questions: Annotated[Path | None, typer.Option(help="A store of `bgt retrieve-similar`.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to serve on.", show_default="8501, or the next free one")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the app in a browser. It runs until you press Ctrl+C."""
    if not find_spec("streamlit"):
        raise NotFound('The app needs Streamlit: pip install "bgt[app]"')
    if port is not None and not 0 < port < 65_536:
        raise UsageError(f"{port}: a port is from 1 to 65535", parameter="port")
    from streamlit.web import cli

    served = [f"--server.port={port}"] if port else []
    served += [] if browser else ["--server.headless=true"]
    given = {"--model": model, "--data": data, "--results": results, "--questions": [questions] if questions else []}
    words = [str(part) for name, values in given.items() for value in values or () for part in (name, value)]
    cli.main(["run", str(next(filter(Path.is_file, PLACES))), *served, "--", *words], prog_name="bgt app")
