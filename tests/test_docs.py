"""`make docs`: a page for each public module, without a warning and without a network."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import bgt_core
from bgt_core.contracts import Tokens

ROOT = Path(__file__).resolve().parent.parent
MODULES = [path for package in ("bgt_core", "probes") for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "api"
    command = [sys.executable, "-W", "error", str(ROOT / "docs" / "build.py"), str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=out.parent, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return out


class Addresses(HTMLParser):
    """What a page loads or links to."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("href", "src"):
                self.loads.append(value or "")


@pytest.mark.slow
def test_every_public_module_has_a_page(pages: Path) -> None:
    for path in MODULES:
        page = (path.parent if path.name == "__init__.py" else path).relative_to(ROOT).with_suffix(".html")
        assert path.name == "__main__.py" or (pages / page).is_file(), page
    assert str(ROOT) not in (pages / "bgt_core.html").read_text("utf-8")
    for name in bgt_core.__all__:
        assert f'id="{name}"' in (pages / "bgt_core.html").read_text("utf-8"), name


@pytest.mark.slow
def test_the_start_page_leads_somewhere_and_loads_nothing_from_elsewhere(pages: Path) -> None:
    start = Addresses(pages / "index.html")
    for link in start.links:
        if not link.startswith(("#", "https:", "../../")):
            assert (pages / link).is_file(), link
    for page in ("index.html", "bgt_core/contracts.html"):
        assert all(address.startswith(("data:", "house.svg")) for address in Addresses(pages / page).loads)


def test_the_picture_shows_the_model_that_ships() -> None:
    picture = re.sub(r"\s+", " ", (ROOT / "docs" / "house.svg").read_text("utf-8"))
    model = bgt_core.load(device="cpu", precision="fp32")
    for lang, texts in {
        "en": ["Where is the station?", "It is late."],
        "fr": ["Où est la gare ?", "Il est tard."],
    }.items():
        side = Tokens.pad(model.tokenizer.encode(texts), lang)
        assert tuple(side.ids.shape) == (2, 6) and int(side.mask.sum()) == 11
        for text, ids in zip(texts, side.ids.tolist(), strict=True):
            assert text in picture and " ".join(map(str, ids)) in picture
        for latent in model.latents:
            vectors = model.embed(texts, lang=lang, latent=latent)
            assert str(vectors.shape) in picture
            if (lang, latent) != ("fr", "semantic"):  # drawn as a vector only
                assert " ".join(f"{value:.2f}".replace("-", "−") for value in vectors[0, :3]) in picture


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def test_columns_in_docstrings_are_indented() -> None:
    """Markdown runs lines together, and spaces; four spaces in front keep both."""
    lost = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in MODULES
        for text in docstrings(ast.parse(path.read_text("utf-8")))
        for line in text.splitlines()
        if re.search(r"\S {2,}\S", line) and not line.startswith(("    ", "|"))
    ]
    assert not lost, "\n".join(lost)
