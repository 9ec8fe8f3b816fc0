"""Read files of sentences that mean the same, or of their vectors, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from bgt_core.data.columns import Source, parse_columns, parse_source, read_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.splitting.gather import AT_ONCE, Columns, Data
from bgt_core.vectors.arrays import read_npy


def sources(files: Sequence[str], langs: str | None) -> tuple[list[Source], dict[str, str]]:
    """Find the columns of files.

    Args:
        files: FILE, or COLUMNS=FILE, as in en-fr=FILE.
        langs: Languages of the columns, as in en,fr, or names and languages, as in a:en,b:en; None if each file names
            its languages.

    Returns:
        The files with the names of their columns, and the language of each name.

    Raises:
        UsageError: Columns that are not named, or unknown, or that repeat a name.
    """
    named = parse_columns(langs.split(",")) if langs else {}
    found = [parse_source(file, tuple(named)) for file in files]
    if not langs:
        named = {name: lang for source in found for name, lang in parse_columns(read_columns(source.columns)).items()}
    return found, named


def vector_files(source: Source) -> list[Path]:
    """NAME.en.npy and NAME.fr.npy of a source NAME; none unless all columns have one."""
    paths = [Path(f"{source.path}.{name}.npy") for name in read_columns(source.columns)]
    return paths if all(path.is_file() for path in paths) else []


def read(source: Source, languages: dict[str, str], skipped: Skipped, limit: int | None) -> Data:
    """Open a file for `split`: its vectors if it has some, mapped, else its sentences in batches.

    Args:
        source: The file and its columns.
        languages: The language of each column.
        skipped: Where bad lines are counted.
        limit: At most this many rows.
    """
    langs = [languages[name] for name in read_columns(source.columns)]
    if vectors := vector_files(source):
        return langs, [read_npy(path)[:limit] for path in vectors]
    return langs, in_batches(islice(read_pairs(source.path, source.columns, skipped), limit))


def in_batches(rows: Iterator[tuple[str, ...]]) -> Iterator[Columns]:
    """Rows -> batches of columns."""
    while batch := list(islice(rows, AT_ONCE)):
        yield list(zip(*batch, strict=True))


def rows(source: Source, numbers: Iterable[int]) -> list[tuple[str, ...]]:
    """The sentences of some rows, by their numbers."""
    wanted = {int(number) for number in numbers}
    read = enumerate(read_pairs(source.path, source.columns, Skipped()))
    return [row for number, row in read if number in wanted]
