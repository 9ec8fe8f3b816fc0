"""`make docs` builds a site with a page for each public module, without warnings and without network access."""

import ast
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import pytest
import torch

import bgt_core
from bgt_core.contracts import Batch, Tokens

ROOT = Path(__file__).resolve().parent.parent
MODULES = [path for package in ("bgt_core", "probes") for path in sorted((ROOT / package).rglob("*.py"))]


WITH_EXAMPLES = [path for path in MODULES if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_in_docstrings_print_what_they_say(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    failed, tried = doctest.testmod(import_module(name), extraglobs={"bgt_core": bgt_core})
    assert tried and not failed


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")  # there must be no warnings
    return out


class Addresses(HTMLParser):
    """The URLs that a page loads or links to, and the ids of its elements."""

    def __init__(self, page: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.add(value or "")
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in ("href", "src"):
                self.loads.append(value or "")


@pytest.mark.slow
@pytest.mark.long
def test_every_public_module_has_a_page_and_all_links_lead_somewhere_on_the_site(site: Path) -> None:
    for path in MODULES:
        module = path.relative_to(ROOT)
        page = module.parent / "index.html" if path.name == "__init__.py" else module.with_suffix(".html")
        assert path.name == "__main__.py" or (site / "api" / page).is_file(), page
    ids = Addresses(site / "api" / "bgt_core" / "index.html").ids
    assert {f"bgt_core.{name}" for name in bgt_core.__all__} <= ids
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text("utf-8"), page
        addresses = Addresses(page)
        assert not [load for load in addresses.loads if re.match(r"(https?:)?//", load)], page
        for link in [*addresses.links, *addresses.loads]:
            if not re.match(r"#|https?:|data:|mailto:|javascript:", link) and page.name != "404.html":
                path = page.parent / unquote(link).partition("#")[0].partition("?")[0]
                assert path.exists(), f"{page}: {link}"
    assert (site / "search" / "search_index.js").is_file()
    assert 'data-md-component="search"' in (site / "index.html").read_text("utf-8")


def test_the_picture_shows_the_model_that_ships() -> None:
    picture = re.sub(r"\s+", " ", (ROOT / "docs" / "house.svg").read_text("utf-8"))
    model = bgt_core.load(device="cpu", precision="fp32")
    both = {"en": ["Where is the station?", "It is late."], "fr": ["Où est la gare ?", "Il est tard."]}
    sides = {lang: Tokens.pad(model.tokenizer.encode(texts), lang) for lang, texts in both.items()}
    for lang, texts in both.items():
        side = sides[lang]
        assert tuple(side.ids.shape) == (2, 6) and int(side.mask.sum()) == 11
        for text, ids in zip(texts, side.ids.tolist(), strict=True):
            assert text in picture and " ".join(map(str, ids)) in picture
        for latent in model.latents:
            vectors = model.embed(texts, lang=lang, latent=latent)
            assert str(vectors.shape) in picture
            assert " ".join(f"{value:.2f}".replace("-", "−") for value in vectors[0, :3]) in picture
    english, french = (model.embed(texts[0], lang=lang) for lang, texts in both.items())
    assert f'y="506">{model.similarity_pairwise(english[None], french[None])[0]:.2f}<' in picture
    [text] = bgt_core.generate(model, both["en"][:1], both["fr"][1:], source_lang="en", lang="fr")
    assert f'font-weight="600">{text}<' in picture
    with torch.no_grad():
        out = model.model(Batch(sides, anchor="en"), lambda posterior: posterior.mean)
    nats = {each.name: each.nll()[1].sum() for each in out.predictions}
    nats |= {f"kl, language/{name}": posterior.kl().sum() for name, posterior in out.named_posteriors()}
    drawn = " ".join(re.sub("<.*?>", " ", picture).split())
    for name in ("reconstruct", "translate", "kl, language"):
        assert f"{name} en {nats[f'{name}/en']:.1f} fr {nats[f'{name}/fr']:.1f} " in drawn
    assert f"kl, semantic {nats['kl, language/semantic/en']:.1f} " in drawn


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def test_columns_in_docstrings_are_indented() -> None:
    """Markdown joins lines and spaces unless four spaces indent them, so docstrings must indent columns."""
    lost = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in MODULES
        for text in docstrings(ast.parse(path.read_text("utf-8")))
        for line in text.splitlines()
        if re.search(r"\S {2,}\S", line) and not line.startswith(("    ", "|", ">>> "))
    ]
    assert not lost, "\n".join(lost)
