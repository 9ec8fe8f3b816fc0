"""Hooks of `make docs`: they add pages for public modules, and for files outside docs/ to which a page links."""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bgt_core", "probes")
LINK = re.compile(r"\]\(([^)\s#:]+)(?=[)#])")


def address(path: Path) -> str:
    """Return the address of a repository file on the site. README.md is the start page; X/README.md becomes X.md."""
    if path.suffix == ".py" and path.parts[0] in PACKAGES:
        path = Path("api", path.parent / "index.md" if path.stem == "__init__" else path.with_suffix(".md"))
    elif path.parts[0] == "docs":
        path = path.relative_to("docs")
    if path.name == "README.md":
        return f"{path.parent}.md" if path.parent.name else "index.md"
    return path.as_posix()


def linked(page: Path, link: str) -> Path | None:
    """Return the file to which a page links, or None. For a link to a folder, return its `__init__.py` or README."""
    path = Path(os.path.normpath(page.parent / link))
    files = (path, path / "__init__.py", path / "README.md")
    return next((file for file in files if (ROOT / file).is_file()), None)


def entries(package: Path) -> list[object]:
    """List the navigation entries of a package: the package itself, its subpackages and its public modules."""
    below: list[object] = [address(package / "__init__.py")]
    for path in sorted((ROOT / package).iterdir()):
        if (path / "__init__.py").is_file():
            below.append({path.name: entries(package / path.name)})
        elif path.suffix == ".py" and not path.stem.startswith("_"):
            below.append({path.stem: address(package / path.name)})
    return below


def on_config(config: MkDocsConfig) -> None:
    config.nav = [*(config.nav or []), {"API": [{package: entries(Path(package))} for package in PACKAGES]}]


def on_files(files: Files, config: MkDocsConfig) -> None:
    for path in sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if path.stem == "__init__" or not path.stem.startswith("_"):
            name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            files.append(File.generated(config, address(path), content=f"# {name}\n\n::: {name}\n"))
    waiting = [Path("README.md"), *(Path("docs", file.src_uri) for file in files.documentation_pages() if file.src_dir)]
    while waiting:
        page = waiting.pop()
        if address(page) not in files.src_uris:
            files.append(File.generated(config, address(page), abs_src_path=str(ROOT / page)))
        if page.suffix == ".md":
            paths = [linked(page, link) for link in LINK.findall((ROOT / page).read_text("utf-8"))]
            waiting += [path for path in paths if path and address(path) not in files.src_uris]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links within the site."""
    if not page.file.abs_src_path:
        return markdown
    source, folder = Path(page.file.abs_src_path).relative_to(ROOT), Path(page.file.src_uri).parent

    def within(link: re.Match[str]) -> str:
        path = linked(source, link[1])
        return f"]({os.path.relpath(address(path), folder)}" if path else link[0]

    return LINK.sub(within, markdown)
