"""Convert downloads to files that our commands read.

Each function gets the archives, by the last part of their address, and the request; it writes files into the folder
`out` and describes them.
"""

from __future__ import annotations

import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO

from bgt_core.data.fetch.request import Archives, Converted, OutputFile, Request
from bgt_core.data.fetch.unpack import check_size, damaged, unpack
from bgt_core.data.pairfile import pair_file
from bgt_core.data.parallel import Row
from bgt_core.data.textfile import LONGEST_LINE, lines
from bgt_core.errors import DataError
from bgt_core.files import atomic_file, writing

CHUNK = 4096  # rows written together
SMALL = 2**26  # bytes of a file that is read at once
STS_COLUMNS = ("gold", "sentence", "sentence")
NOT_TEXT = (b"version https://git-lfs", b"<!doctype", b"<html")  # starts of replies that are not the requested text


def as_is(archives: Archives, request: Request, out: Path) -> Converted:
    """Keep every file as its source gives it, in a folder of the source's name; unpack archives."""
    folder = out / request.stem
    paths: list[Path] = []
    for name, archive in archives.items():
        if name.lower().endswith((".zip", ".tar", ".tgz", ".gz")):
            paths += unpack(archive, folder if len(archives) == 1 else folder / name.rpartition(".")[0])
        else:
            paths.append(_moved(archive, folder / name))
    return Converted([OutputFile(path) for path in paths], {})


def tracks(archives: Archives, request: Request, out: Path) -> Converted:
    """Combine SemEval-2017's archives of sentences and scores into one folder, STS.input.* beside STS.gs.*."""
    folder = out / request.stem
    unpacked = [path for name, archive in archives.items() for path in unpack(archive, archive.with_suffix(".d"))]
    paths = [_moved(path, folder / path.name) for path in unpacked if path.name.startswith("STS.")]
    if not paths:
        raise DataError(
            f"is needed: {' and '.join(archives)} hold no STS.input.NAME.txt; keep them as they are.", parameter="raw"
        )
    return Converted([OutputFile(path) for path in sorted(paths)], {})


def moses(archives: Archives, request: Request, out: Path) -> Converted:
    """Convert OPUS's line-aligned zip to one TSV, columns in the order of the request's languages.

    Pairs with an empty side are left out. With `max_pairs`, a random sample is kept, in order.
    """
    (archive,) = archives.values()
    table = out / f"{request.stem}.tsv.zst"
    left_out: Counter[str] = Counter()
    with damaged(archive), zipfile.ZipFile(archive) as inside:
        check_size(archive, inside)
        names = [_only(inside, archive, f".{lang}") for lang in request.langs]
        rows = _full(_rows(inside, names, archive), left_out)
        if request.max_pairs is not None:
            total = sum(1 for _ in _full(_rows(inside, names, archive), Counter()))
            rows = _sample(rows, total, request.max_pairs, request.seed)
            left_out["not in the sample"] = max(0, total - request.max_pairs)
        count = 0
        with pair_file(table, request.langs) as add:
            while chunk := list(islice(rows, CHUNK)):
                add(chunk)
                count += len(chunk)
            if not count:
                raise DataError(f"{archive}: it holds no pairs.")
        files = [OutputFile(table, request.langs, count), *_notes(inside, archive, out / request.stem)]
    return Converted(files, dict(left_out))


def tatoeba(archives: Archives, request: Request, out: Path) -> Converted:
    """Convert LASER's two line-aligned files to one TSV."""
    sides = {("en" if name.endswith(".eng") else "other"): path for name, path in archives.items()}
    for path in sides.values():
        _whole_text(path)
    files = [sides["en" if lang == "en" else "other"] for lang in request.langs]
    rows = list(zip_longest(*map(lines, files)))
    if any(None in row for row in rows):
        raise DataError(f"{' and '.join(archives)}: differ in their number of lines; expected the same.")
    table = out / f"{request.stem}.tsv"
    with pair_file(table, request.langs) as add:
        add([[_cell(side) for side in row] for row in rows])
    return Converted([OutputFile(table, request.langs, len(rows))], {})


def sts(archives: Archives, request: Request, out: Path) -> Converted:
    """Convert SemEval's STS.input.X.txt and STS.gs.X.txt to YEAR/X.tsv: gold, sentence, sentence.

    Pairs without a score (most of 2015 and 2016) are left out.
    """
    (archive,) = archives.values()
    texts: dict[tuple[str, str], bytes] = {}  # (name of the set, "input" or "gs")
    with damaged(archive), zipfile.ZipFile(archive) as inside:
        for entry in inside.infolist():
            match = re.fullmatch(r"(?:.*/)?STS(?:\d{4})?\.(input|gs)\.(?:surprise\.)?([\w-]+)\.txt", entry.filename)
            if match and match[2] != "ALL" and not entry.filename.startswith("__MACOSX"):
                texts[match[2], match[1]] = _read(inside, entry, archive)
    names = sorted({name for name, _ in texts})
    if not names:
        raise DataError(f"is needed: {archive} holds no STS.input.NAME.txt; keep it as it is.", parameter="raw")
    year = request.source.name.removeprefix("sts")
    files, unscored = [], 0
    for name in names:
        gold, text = (_text_lines(archive, texts.get((name, kind), b"")) for kind in ("gs", "input"))
        pairs = [line.split("\t")[:2] for line in text]
        if len(gold) != len(pairs) or any(len(pair) < 2 for pair in pairs):
            problem = f"{name} has {len(gold)} scores for {len(pairs)} lines"
            raise DataError(f"is needed: {archive}: {problem}; keep it as it is.", parameter="raw")
        scored = [[score, *pair] for score, pair in zip(map(str.strip, gold), pairs, strict=True) if score]
        table = out / year / f"{name}.tsv"
        with pair_file(table, STS_COLUMNS) as add:
            add([[_cell(cell.encode()) for cell in row] for row in scored])
        files.append(OutputFile(table, STS_COLUMNS, len(scored)))
        unscored += len(pairs) - len(scored)
    return Converted(files, {"no score": unscored})


def _text_lines(archive: Path, text: bytes) -> list[str]:
    try:
        return text.decode("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        problem = f"{archive} holds a file that is not UTF-8 ({error})"
        raise DataError(f"is needed: {problem}; keep it as it is.", parameter="raw") from None


def _only(inside: zipfile.ZipFile, archive: Path, ending: str) -> str:
    names = [name for name in inside.namelist() if name.endswith(ending)]
    if len(names) != 1:
        raise DataError(f"{archive}: expected one file ending in {ending}, found {', '.join(inside.namelist())}.")
    return names[0]


def _rows(inside: zipfile.ZipFile, names: list[str], archive: Path) -> Iterator[Row]:
    """Read all sides line by line; DataError if their numbers of lines differ."""
    with ExitStack() as stack:
        sides = [_lines(stack.enter_context(inside.open(name)), archive) for name in names]
        for row in zip_longest(*sides):
            if None in row:
                raise DataError(f"{archive}: {' and '.join(names)} differ in their number of lines.")
            yield row


def _lines(member: IO[bytes], archive: Path) -> Iterator[bytes]:
    while line := member.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise DataError(f"{archive}: has a line of more than {LONGEST_LINE} bytes; expected text.")
        yield _cell(line)


def _cell(line: bytes) -> bytes:
    """Turn a line into a cell of a TSV."""
    return line.replace(b"\t", b" ").replace(b"\r", b" ").strip()


def _full(rows: Iterator[Row], left_out: Counter[str]) -> Iterator[Row]:
    """Keep rows with text on every side; count the others."""
    for row in rows:
        if all(row):
            yield row
        else:
            left_out["empty side"] += 1


def _sample(rows: Iterator[Row], total: int, count: int, seed: int) -> Iterator[Row]:
    """Choose `count` of the `total` rows at random, in order (Knuth, TAOCP 3.4.2, algorithm S)."""
    draw = random.Random(seed)
    for row in rows:
        if draw.random() * total < count:
            count -= 1
            yield row
        total -= 1


def _notes(inside: zipfile.ZipFile, archive: Path, stem: Path) -> list[OutputFile]:
    """Write the archive's licence and read-me as STEM.LICENSE and STEM.README."""
    files = []
    for name in sorted({"LICENSE", "README"} & set(inside.namelist())):
        path = stem.with_name(f"{stem.name}.{name}")
        content = _read(inside, inside.getinfo(name), archive)
        with atomic_file(path) as partial:
            partial.write_bytes(content)
        files.append(OutputFile(path))
    return files


def _read(inside: zipfile.ZipFile, entry: zipfile.ZipInfo, archive: Path) -> bytes:
    """Read a file that must be small."""
    if entry.file_size > SMALL:
        raise DataError(f"{archive}: {entry.filename} has {entry.file_size:,} bytes, expected at most {SMALL:,}.")
    return inside.read(entry)


def _moved(path: Path, out: Path) -> Path:
    _whole_text(path)
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        path.replace(out)
    return out


def _whole_text(path: Path) -> None:
    """Raise DataError for common replies in place of a text: a web page, or the pointer of a large file."""
    with path.open("rb") as file:
        if (start := file.read(64).lower().lstrip()).startswith(NOT_TEXT):
            raise DataError(f"{path}: expected text, found {start[:30]!r}; the address may have changed.")
