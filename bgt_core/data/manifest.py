"""What lies in a folder of data and where it came from: OUT/bgt-data.json, one document a folder.

sources.NAME   address, bytes and SHA-256 of what was downloaded, licence, when
files.NAME     bytes, SHA-256 and, where we wrote it, columns and rows; of which source
"""

from __future__ import annotations

import json
import os
from hashlib import file_digest
from pathlib import Path
from typing import Any

from bgt_core.errors import DataError, NotFound
from bgt_core.files import writing

NAME = "bgt-data.json"
SCHEMA = "bgt-data/1"
CARD = "bgt-pairs/1"

Json = dict[str, Any]


def read_lock(folder: Path) -> Json:
    """That of `folder`, an empty one where it has none; BgtError for a damaged one."""
    path = folder / NAME
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        if lock["schema"] != SCHEMA or not isinstance(lock["sources"], dict) or not isinstance(lock["files"], dict):
            raise ValueError("not a lock file of this version")
    except FileNotFoundError:
        return {"schema": SCHEMA, "sources": {}, "files": {}}
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it, and download again what it listed.") from None
    return lock


def write_json(path: Path, value: Json) -> None:
    """Whole or not there."""
    fresh = path.with_name(path.name + ".new")
    try:
        with writing(path):
            fresh.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def facts(path: Path) -> Json:
    """Bytes and SHA-256 of a file; BgtError where it can't be read."""
    try:
        with path.open("rb") as file:
            return {"bytes": path.stat().st_size, "sha256": file_digest(file, "sha256").hexdigest()}
    except OSError as error:
        raise NotFound(f"{path}: can't be read ({error.strerror}).") from None


def card_of(path: Path) -> Path:
    """Where `bgt data prepare` says what a file holds."""
    return path.with_name(path.name + ".json")


def read_card(path: Path) -> Json | None:
    """The card of a prepared file, None where it has none; BgtError for a damaged one."""
    try:
        card = json.loads(card_of(path).read_text(encoding="utf-8"))
        if card["schema"] != CARD or not isinstance(card["file"], dict):
            raise ValueError("not a card of this version")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{card_of(path)}: damaged ({error}); prepare {path.name} again.") from None
    return card


def recorded(path: Path) -> tuple[Path, Json] | None:
    """(folder, its lock) of the nearest lock file that lists this file, None where none does."""
    for folder in path.absolute().parents:
        if (folder / NAME).is_file():
            lock = read_lock(folder)
            return (folder, lock) if _name(path, folder) in lock["files"] else None
    return None


def of_file(path: Path) -> Json | None:
    """What its card or its lock file says of a file, None where neither does."""
    if card := read_card(path):
        return card["file"]
    found = recorded(path)
    return found[1]["files"][_name(path, found[0])] if found else None


def licence(path: Path) -> str:
    """Of a file that `bgt data` made; "not recorded" for any other."""
    if card := read_card(path):
        return card["licence"]
    if found := recorded(path):
        folder, lock = found
        return lock["sources"][lock["files"][_name(path, folder)]["source"]]["licence"]
    return "not recorded"


def _name(path: Path, folder: Path) -> str:
    return path.absolute().relative_to(folder).as_posix()
