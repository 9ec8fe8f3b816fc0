"""Check that files match their manifest or card: bytes, SHA-256, rows, columns, UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bgt_core.data import manifest
from bgt_core.data.parallel import EXAMPLES, check, chunks
from bgt_core.errors import BgtError, NotFound


class FileCheck(NamedTuple):
    """The result of checking one file; without problems it is as recorded."""

    path: Path
    rows: int | None
    problems: list[str]


def inspect(path: Path) -> list[FileCheck]:
    """Check every file that `path` records: a folder with a manifest, the manifest itself, or a prepared file.

    Raises NotFound without a manifest or card, and DataError if one is damaged.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name == manifest.NAME:
        expected = {folder / name: entry for name, entry in manifest.read_manifest(folder)["files"].items()}
        if not expected and not any(folder.glob("*")):
            raise NotFound(f"{path}: it does not exist or is empty; see `bgt data download`.")
        cards = {card.with_suffix("") for card in folder.glob("*.json") if card.name != manifest.NAME}
        expected |= {file: card["file"] for file in sorted(cards) if (card := _card(file))}
        if not expected:
            raise NotFound(f"is needed to check {path}, which has no {manifest.NAME} and no card.", parameter="langs")
    elif facts := manifest.recorded_facts(path):
        expected = {path: facts}
    else:
        raise NotFound(f"is needed to check {path}, which has no card and is in no manifest.", parameter="langs")
    return [_inspect(file, facts) for file, facts in expected.items()]


def inspect_table(path: Path, langs: Sequence[str]) -> FileCheck:
    """Check any table of pairs: UTF-8, as many columns as languages, no empty side."""
    rows, problems = _read(path, langs)
    return FileCheck(path, rows, problems if rows else [*problems, "no rows"])


def _card(file: Path) -> manifest.Json | None:
    """Ignore other JSON files."""
    try:
        return manifest.read_card(file)
    except BgtError:
        return None


def _inspect(path: Path, expected: manifest.Json) -> FileCheck:
    if not path.is_file():
        return FileCheck(path, None, ["missing; download or prepare it again"])
    actual, problems, rows = manifest.facts(path), [], None
    if actual["bytes"] != expected["bytes"]:
        problems.append(f"{actual['bytes']} bytes, expected {expected['bytes']}")
    if actual["sha256"] != expected["sha256"]:
        problems.append(f"SHA-256 {actual['sha256'][:12]}..., expected {expected['sha256'][:12]}...")
    if expected["columns"]:
        try:
            rows, bad = _read(path, expected["columns"])
            problems += bad
            if rows != expected["rows"]:
                problems.append(f"{rows} rows, expected {expected['rows']}")
        except BgtError as error:
            problems.append(str(error))
    return FileCheck(path, rows, problems)


def _read(path: Path, columns: Sequence[str]) -> tuple[int, list[str]]:
    """Count the rows and list the first errors: cells that are missing, blank, or not UTF-8."""
    rows, bad = 0, list[str]()
    for chunk in chunks(path, columns):
        bad += [f"line {rows + place + 1}: {message}" for place, _, message in check(chunk, columns)[1]]
        rows += len(chunk)
    return rows, [*bad[:EXAMPLES], f"{len(bad) - EXAMPLES} more bad lines"] if len(bad) > EXAMPLES else bad
