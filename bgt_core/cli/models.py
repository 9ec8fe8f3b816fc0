"""`bgt info`, `bgt export` and `bgt app`: describe a model, convert it for other programs, or show it in the app."""

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

import bgt_core
from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import NotFound, UsageError

PACKAGE = Path(bgt_core.__file__).parent
# In a checkout, the app is beside the package. In a wheel, it is inside the package, because a second top-level package
# called `app` could collide with a package of another project.
PLACES = (PACKAGE.parent / "app", PACKAGE / "bundled" / "app")


def info(
    path: Annotated[
        Path, Argument(help="A checkpoint or run folder, or ORG/NAME on the hub.", show_default=options.SHIPPED)
    ] = PRETRAINED,
    as_json: options.JsonOption = False,
) -> None:
    """Describe a model, and check the hashes of its files."""
    from bgt_core import checkpoint

    facts = checkpoint.info(path)
    if as_json:
        options.print_json("bgt-info/1", facts)
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, part in value.items():
                print(f"  {name}: {on_one_line(part)}")
        else:
            print(f"{key}: {value}")


def on_one_line(value: object) -> object:
    """Format an entry of a model's description on one line; for a table, only its number of rows."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"{len(value)} rows (--json shows them)"
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def export(
    path: Annotated[Path, Argument(help="A checkpoint or run folder, ORG/NAME on the hub, or split:FOLDER.")],
    out: Annotated[Path, Option(help="Output folder, which must not exist; or with --to hub, ORG/NAME.")],
    to: Annotated[
        Literal["checkpoint", "sentence-transformers", "onnx", "hub"],
        Option("--to", help="The output format, or hub to upload the checkpoint to the Hugging Face hub."),
    ] = "checkpoint",
    half: Annotated[bool, Option("--half", help="With --to checkpoint: store the weights in 16 bits.")] = False,
    figures: Annotated[
        Path | None,
        Option("--card", help="With --to checkpoint: a JSON file of measured scores and other facts to store."),
    ] = None,
    latent: Annotated[
        str | None, Option(help="Latent for --to onnx, such as semantic or language.", show_default="semantic")
    ] = None,
    lang: Annotated[
        str | None,
        Option(
            help="Language of the sentences to embed; for --to onnx with a split or a language latent.",
            show_default="the model's first",
        ),
    ] = None,
    private: Annotated[bool, Option("--private", help="With --to hub: make a new repository private.")] = False,
) -> None:
    """Copy a checkpoint without the optimiser's state, convert it to sentence-transformers or ONNX, or upload it.

    `bgt_core.load("ORG/NAME")` opens an uploaded model, whose README is a model card made from the checkpoint.
    """
    from bgt_core.encoders import publish

    if to == "hub":
        print(publish.push(path, str(out), private=private))
        return
    measured = publish.read_figures(figures) if figures else None
    difference = publish.export(path, out, to=to, half=half, figures=measured, latent=latent, lang=lang)
    if difference is not None:
        print(f"largest relative difference from the model in double precision: {difference:.1e}", file=sys.stderr)
    print(out)


def app(
    model: Annotated[
        list[str] | None,
        Option(
            help="A checkpoint or run, a folder of checkpoints or runs, or any other encoder, to show beside the "
            "shipped models. May be repeated."
        ),
    ] = None,
    data: Annotated[
        list[str] | None, Option(help="Data: sentences or translations, as in en,fr=FILE. May be repeated.")
    ] = None,
    results: Annotated[
        list[Path] | None, Option(help="A file or folder of `bgt-probe` results. May be repeated.")
    ] = None,
    questions: Annotated[
        Path | None, Option(help="A store of questions that `bgt retrieve-similar --build` made.")
    ] = None,
    work: Annotated[
        Path | None,
        Option(help="A folder for what you type, upload and split in the app, so that links open it after a restart."),
    ] = None,
    port: Annotated[
        int | None, Option(help="Port of the server.", show_default="8501, or the next one that is free")
    ] = None,
    browser: Annotated[bool, Option(help="Open a browser.")] = True,
) -> None:
    """Open the app in a browser. It runs until you press Ctrl+C."""
    if not find_spec("streamlit"):
        raise NotFound('The app needs Streamlit, which is not installed. Install it with: pip install "bgt[app]"')
    if port is not None and not 0 < port < 65_536:
        raise UsageError(f"{port}: expected a port from 1 to 65535.", parameter="port")
    if work and work.is_file():
        raise UsageError(f"{work}: is a file; name a folder, which need not exist.", parameter="work")
    served = [f"--server.port={port}"] if port else []
    served += [] if browser else ["--server.headless=true"]
    given = {"--model": model, "--data": data, "--results": results, "--questions": [questions] if questions else []}
    given["--work"] = [work] if work else []
    words = [str(part) for name, values in given.items() for value in values or () for part in (name, value)]
    sys.path.insert(0, str(next(filter(Path.is_dir, PLACES)).parent))
    import_module("app.serve").serve(served, words)
