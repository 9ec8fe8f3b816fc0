"""API pages from the docstrings: `make docs`, or `python docs/build.py FOLDER`; nothing is fetched."""

from __future__ import annotations

import argparse
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup
from pdoc import doc, render, render_helpers

import bgt_core
import probes

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PACKAGES = ("bgt_core", "probes")


def modules() -> Iterator[str]:
    """The names of all public modules, packages before what is in them."""
    for path in sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        package, module = path.parent.relative_to(ROOT).parts, path.stem
        if module == "__init__":
            yield ".".join(package)
        elif not module.startswith("_"):
            yield ".".join((*package, module))


def target(link: str) -> str:
    """Where a link of docs/index.md leads from the start page: to a module's page, or to any other file."""
    path = (DOCS / link).resolve().relative_to(ROOT)
    if path.parts[0] in PACKAGES:
        return f"{path.parent if path.name == '__init__.py' else path.with_suffix('')}.html"
    return link if path.suffix == ".svg" else f"../../{path}"


def build(out: Path) -> None:
    """Write a page for each public module, a search index and a start page into the folder `out`."""
    for package in (bgt_core, probes):  # pdoc lists what a module holds; these names arrive when they are first used
        for name in package.__all__:
            setattr(package, name, getattr(package, name))
    start = re.sub(r"(?<=\]\()[^)\s]+", lambda link: target(link[0]), (DOCS / "index.md").read_text("utf-8"))
    render.configure(
        docformat="markdown", template_directory=DOCS / "templates", footer_text=f"bgt {bgt_core.__version__}"
    )
    render.env.globals["start"] = Markup(render_helpers.to_html(start))
    pages = {name: doc.Module.from_name(name) for name in modules()}
    with warnings.catch_warnings():
        # the types of a NamedTuple that are imported for the type checker alone stay text on its page
        warnings.filterwarnings("ignore", "Error parsing type annotation ForwardRef")
        for name, module in pages.items():
            write(out / f"{name.replace('.', '/')}.html", render.html_module(module, pages))
        write(out / "search.js", render.search_index(pages))
    write(out / "index.html", render.html_index(pages))
    shutil.copy(DOCS / "house.svg", out)


def write(path: Path, text: str) -> None:
    """The page without this machine's folders, which defaults of parameters may hold."""
    text = text.replace(f"{ROOT}/", "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=DOCS / "api", help="a folder, made where it is absent")
    out = parser.parse_args().out
    build(out)
    print(out / "index.html")


if __name__ == "__main__":
    main()
