"""`bgt-probe cache`: list and remove cached vectors and results."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from bgt_core.cli.errors import Command

app = typer.Typer(no_args_is_help=True, help="List or remove the cached vectors and results of earlier runs.")

CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        help="Folder of kept vectors and results.",
        show_default="BGT_CACHE, or the system's cache folder",
    ),
]


@app.command(cls=Command)
def ls(cache: CacheOption = None) -> None:
    """List the cached files, the last used first."""
    from bgt_core.tables import show
    from probes.results.cache import DAY, Cache, default_folder

    folder = cache or default_folder()
    rows = []
    for path in Cache(folder).entries():
        status = path.stat()
        age, size = (time.time() - status.st_mtime) / DAY, status.st_size / 1e6
        rows.append([str(path.relative_to(folder)), f"{size:.1f}", f"{age:.1f}"])
    show(["file", "MB", "days since use"], rows)


@app.command(cls=Command)
def prune(
    cache: CacheOption = None,
    days: Annotated[float, typer.Option(help="Keep files used in the last N days.", min=0)] = 0,
) -> None:
    """Remove cached files; they are computed again when needed."""
    from probes.results.cache import Cache, default_folder

    count, size = Cache(cache or default_folder()).prune(days)
    print(f"{count} files removed, {size / 1e6:.1f} MB")
