"""Records of a data folder: the manifest FOLDER/bgt-data.json, and a card for each file that we made.

A manifest has these parts:

    sources.NAME   address, bytes and SHA-256 of the download, its licence and date
    files.NAME     bytes, SHA-256 and source; columns and rows if we wrote it
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bgt_core import files
from bgt_core.errors import DataError, NotFound

NAME = "bgt-data.json"
SCHEMA = "bgt-data/1"
CARD = "bgt-pairs/1"

Json = dict[str, Any]


def read_manifest(folder: Path) -> Json:
    """The manifest of `folder`, empty if it has none; DataError for a damaged one."""
    path = folder / NAME
    if not path.exists():
        return {"schema": SCHEMA, "sources": {}, "files": {}}
    try:
        manifest = files.read_json(path)
        tables = [manifest["sources"], manifest["files"]]
        sound = all(isinstance(each, dict) for table in tables for each in (table, *table.values()))
        if manifest["schema"] != SCHEMA or not sound:
            raise ValueError("not a manifest of this version")
    except NotFound:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it, and download its data again.") from None
    return manifest


def facts(path: Path) -> Json:
    """Bytes and SHA-256 of a file; NotFound if it can't be read."""
    try:
        return {"bytes": path.stat().st_size, "sha256": files.sha256_file(path)}
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None


def card_path(path: Path) -> Path:
    """The path of the card that `bgt data prepare` writes for the file `path`."""
    return path.with_name(path.name + ".json")


def read_card(path: Path) -> Json | None:
    """The card of a prepared file, None if it has none; DataError for a damaged one."""
    try:
        if not card_path(path).exists():
            return None
        card = files.read_json(card_path(path))
        if card["schema"] != CARD or not isinstance(card["file"], dict):
            raise ValueError("not a card of this version")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{card_path(path)}: damaged ({error}); prepare {path.name} again.") from None
    return card


def write_card(
    path: Path, columns: Sequence[str], rows: int, sources: Sequence[Path], about: Json, licence: str | None = None
) -> None:
    """Write the card of a table: its content, its source files with their licences, and `about`.

    Replaces an older card. Raises NotFound if it can't be written.
    """
    card = {"schema": CARD, "file": {**facts(path), "columns": list(columns), "rows": rows}, **about}
    files.write_json(card_path(path), card | provenance(sources, licence), indent=1)


def provenance(sources: Sequence[Path], licence: str | None = None) -> Json:
    """Bytes and SHA-256 of each source, and their licences unless `licence` is given."""
    licences = licence or "; ".join(sorted({licence_of(file) for file in sources}))
    return {"sources": {str(file): facts(file) for file in sources}, "licence": licences}


def licence_of(path: Path) -> str:
    """The licence of a file that `bgt data` made or downloaded; "not recorded" for any other."""
    if card := read_card(path):
        return card["licence"]
    for folder in path.absolute().parents:
        if (folder / NAME).is_file():
            manifest = read_manifest(folder)
            if entry := manifest["files"].get(path.absolute().relative_to(folder).as_posix()):
                return manifest["sources"][entry["source"]]["licence"]
    return "not recorded"
