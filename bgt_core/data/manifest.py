"""Read and write records of data: the manifest FOLDER/bgt-data.json, and a card for each file that `bgt data` made.

`bgt data download` writes the manifest, which has these parts:

    sources.NAME   address, bytes and SHA-256 of the download, its licence and date
    files.NAME     bytes, SHA-256 and source of each file; for a converted table also its columns and number of rows
"""

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
    """Read the manifest of `folder`, or return an empty manifest if it has none; DataError if it is damaged."""
    path = folder / NAME
    if not path.exists():
        return {"schema": SCHEMA, "sources": {}, "files": {}}
    try:
        manifest = files.read_json(path)
        tables = [manifest["sources"], manifest["files"]]
        sound = all(isinstance(each, dict) for table in tables for each in (table, *table.values()))
        if manifest["schema"] != SCHEMA or not sound:
            raise ValueError("its format is of another version")
    except NotFound:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it, and download the data again.") from None
    return manifest


def facts(path: Path) -> Json:
    """Return the size in bytes and the SHA-256 of a file; NotFound if it can't be read."""
    try:
        return {"bytes": path.stat().st_size, "sha256": files.sha256_file(path)}
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None


def read_card(path: Path) -> Json | None:
    """Read the JSON card that describes the file `path`; None if there is no card; DataError if it is damaged."""
    card_path = files.record_path(path)
    try:
        if not card_path.exists():
            return None
        card = files.read_json(card_path)
        if card["schema"] != CARD or not isinstance(card["file"], dict):
            raise ValueError("its format is of another version")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{card_path}: damaged ({error}); make {path.name} again.") from None
    return card


def write_card(
    path: Path, columns: Sequence[str], rows: int, sources: Sequence[Path], about: Json, licence: str | None = None
) -> None:
    """Describe the table `path` in a JSON card: size, columns, rows, source files with their licences, and `about`.

    Replaces an older card. Raises NotFound if the card can't be written.
    """
    licences = licence or "; ".join(sorted({licence_of(file) for file in sources}))
    made = {"sources": {str(file): facts(file) for file in sources}, "licence": licences}
    card = {"schema": CARD, "file": {**facts(path), "columns": list(columns), "rows": rows}, **about, **made}
    files.write_json(files.record_path(path), card, indent=1)


def licence_of(path: Path) -> str:
    """Return the licence of a file that `bgt data` made or downloaded; "not recorded" for other files."""
    if card := read_card(path):
        return card["licence"]
    for folder in path.absolute().parents:
        if (folder / NAME).is_file():
            manifest = read_manifest(folder)
            if entry := manifest["files"].get(path.absolute().relative_to(folder).as_posix()):
                return manifest["sources"][entry["source"]]["licence"]
    return "not recorded"
