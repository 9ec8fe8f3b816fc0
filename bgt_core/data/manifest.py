"""What lies in a folder of data and where it came from: the manifest FOLDER/bgt-data.json, and a card per file we made.

A manifest has these parts:

    sources.NAME   address, bytes and SHA-256 of what was downloaded, licence, when
    files.NAME     bytes, SHA-256 and, where we wrote it, columns and rows; of which source
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
    """The manifest of `folder`, an empty one where it has none; DataError for a damaged one."""
    path = folder / NAME
    try:
        if not path.exists():
            return {"schema": SCHEMA, "sources": {}, "files": {}}
        manifest = files.read_json(path)
        if (
            manifest["schema"] != SCHEMA
            or not isinstance(manifest["sources"], dict)
            or not isinstance(manifest["files"], dict)
        ):
            raise ValueError("not a manifest of this version")
        for record in [*manifest["sources"].values(), *manifest["files"].values()]:
            if not isinstance(record, dict):
                raise ValueError("an entry is no object")
    except NotFound:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it, and download again what it listed.") from None
    return manifest


def write_manifest(folder: Path, manifest: Json) -> None:
    """Replaces the manifest of `folder`; NotFound where it can't be written."""
    files.write_json(folder / NAME, manifest, indent=1)


def facts(path: Path) -> Json:
    """Bytes and SHA-256 of a file; NotFound where it can't be read."""
    try:
        return {"bytes": path.stat().st_size, "sha256": files.sha256_file(path)}
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None


def card_path(path: Path) -> Path:
    """Where `bgt data prepare` says what the file `path` holds."""
    return path.with_name(path.name + ".json")


def read_card(path: Path) -> Json | None:
    """The card of a prepared file, None where it has none; DataError for a damaged one."""
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
    """Write the card of a table: what it holds, the files it was made of with their licences, and `about`.

    Replaces an older card. Raises NotFound where it can't be written.
    """
    card = {"schema": CARD, "file": {**facts(path), "columns": list(columns), "rows": rows}, **about}
    files.write_json(card_path(path), card | provenance(sources, licence), indent=1)


def provenance(sources: Sequence[Path], licence: str | None = None) -> Json:
    """Bytes and SHA-256 of each source, and their licences unless `licence` is given."""
    licences = licence or "; ".join(sorted({licence_of(file) for file in sources}))
    return {"sources": {str(file): facts(file) for file in sources}, "licence": licences}


def manifest_of(path: Path) -> tuple[Json, Json] | None:
    """(manifest, its entry of this file) of the nearest manifest that lists `path`, None where none does."""
    for folder in path.absolute().parents:
        if (folder / NAME).is_file():
            manifest = read_manifest(folder)
            entry = manifest["files"].get(path.absolute().relative_to(folder).as_posix())
            return (manifest, entry) if entry else None
    return None


def recorded_facts(path: Path) -> Json | None:
    """What its card or its manifest says of a file (bytes, SHA-256, columns, rows), None where neither does."""
    if card := read_card(path):
        return card["file"]
    listed = manifest_of(path)
    return listed[1] if listed else None


def licence_of(path: Path) -> str:
    """Of a file that `bgt data` made; "not recorded" for any other."""
    if card := read_card(path):
        return card["licence"]
    if listed := manifest_of(path):
        manifest, entry = listed
        return manifest["sources"][entry["source"]]["licence"]
    return "not recorded"
