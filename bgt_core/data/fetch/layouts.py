"""What was downloaded to files that our commands read.

Each function gets the archives, by the last part of their address, and what is wanted; it writes into one folder and
says what it made.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from bgt_core.data.fetch.unpack import damaged, unpack
from bgt_core.data.pairfile import pair_file
from bgt_core.data.parallel import LONGEST_LINE, Row, lines
from bgt_core.errors import DataError
from bgt_core.files import writing

Archives = Mapping[str, Path]  # the last part of the address -> the file downloaded from there
MANY = 4096  # rows written together
SMALL = 2**26  # bytes of a file that is read at once
STS_COLUMNS = ("gold", "sentence", "sentence")
SPOILT = (b"version https://git-lfs", b"<!doctype", b"<html")  # what a server may send in place of a text


@dataclass(frozen=True)
class Wanted:
    """What was asked for, and where it goes."""

    name: str  # "opensubtitles"
    out: Path
    langs: tuple[str, ...] = ()  # in the order of the columns
    release: str = ""
    max_pairs: int | None = None  # a random sample of so many
    seed: int = 1

    @property
    def stem(self) -> str:
        """Of the files made: "opensubtitles.v2018.en-fr"."""
        parts = [self.name, self.release, "-".join(self.langs)]
        return ".".join(filter(None, [*parts, str(self.max_pairs) if self.max_pairs else ""]))


@dataclass(frozen=True)
class MadeFile:
    """A file, and what is in it where we wrote it."""

    path: Path
    columns: tuple[str, ...] = ()  # none: not a table of ours
    rows: int | None = None


@dataclass(frozen=True)
class Made:
    """All files, and what was left out and why."""

    files: list[MadeFile]
    left_out: dict[str, int]


def as_is(archives: Archives, wanted: Wanted) -> Made:
    """Every file as its source gives it, in a folder of the source's name; archives are unpacked."""
    home = wanted.out / wanted.stem
    made: list[Path] = []
    for name, archive in archives.items():
        if name.lower().endswith((".zip", ".tar", ".tgz", ".gz")):
            made += unpack(archive, home if len(archives) == 1 else home / name.rpartition(".")[0])
        else:
            made.append(_moved(archive, home / name))
    return Made([MadeFile(path) for path in made], {})


def tracks(archives: Archives, wanted: Wanted) -> Made:
    """SemEval-2017's archive of sentences and that of scores -> one folder, STS.input.* beside STS.gs.*."""
    home = wanted.out / wanted.stem
    unpacked = [path for name, archive in archives.items() for path in unpack(archive, archive.with_suffix(".d"))]
    made = [_moved(path, home / path.name) for path in unpacked if path.name.startswith("STS.")]
    if not made:
        raise DataError(f"{' and '.join(archives)}: hold no STS.input.NAME.txt; keep them as they are with --raw.")
    return Made([MadeFile(path) for path in sorted(made)], {})


def moses(archives: Archives, wanted: Wanted) -> Made:
    """OPUS's line-aligned zip -> one TSV, columns in the order of the languages asked for.

    Pairs with an empty side are left out. With `max_pairs`, a random sample keeps its order.
    """
    (archive,) = archives.values()
    out = wanted.out / f"{wanted.stem}.tsv.zst"
    left_out: Counter[str] = Counter()
    with damaged(archive), zipfile.ZipFile(archive) as inside:
        names = [_only(inside, archive, f".{lang}") for lang in wanted.langs]
        rows = _full(_rows(inside, names, archive), left_out)
        if wanted.max_pairs is not None:
            total = sum(1 for _ in _full(_rows(inside, names, archive), Counter()))
            rows = _sample(rows, total, wanted.max_pairs, wanted.seed)
            left_out["not in the sample"] = max(0, total - wanted.max_pairs)
        count = 0
        with pair_file(out, wanted.langs) as add:
            while some := list(islice(rows, MANY)):
                add(some)
                count += len(some)
            if not count:
                raise DataError(f"{archive}: holds no pair.")
        made = [MadeFile(out, wanted.langs, count), *_notes(inside, archive, wanted)]
    return Made(made, dict(left_out))


def tatoeba(archives: Archives, wanted: Wanted) -> Made:
    """LASER's two line-aligned files -> one TSV."""
    sides = {("en" if name.endswith(".eng") else "other"): path for name, path in archives.items()}
    for path in sides.values():
        _whole_text(path)
    files = [sides["en" if lang == "en" else "other"] for lang in wanted.langs]
    rows = list(zip_longest(*map(lines, files)))
    if any(None in row for row in rows):
        raise DataError(f"{' and '.join(archives)}: differ in their number of lines; expected the same.")
    out = wanted.out / f"{wanted.stem}.tsv"
    with pair_file(out, wanted.langs) as add:
        add([[_cell(side) for side in row] for row in rows])
    return Made([MadeFile(out, wanted.langs, len(rows))], {})


def sts(archives: Archives, wanted: Wanted) -> Made:
    """SemEval's STS.input.X.txt and STS.gs.X.txt -> YEAR/X.tsv: gold, sentence, sentence.

    Pairs that nobody scored (most of 2015 and 2016) are left out.
    """
    (archive,) = archives.values()
    found: dict[tuple[str, str], bytes] = {}
    with damaged(archive), zipfile.ZipFile(archive) as inside:
        for entry in inside.infolist():
            name = re.fullmatch(r"(?:.*/)?STS(?:\d{4})?\.(input|gs)\.(?:surprise\.)?([\w-]+)\.txt", entry.filename)
            if name and name[2] != "ALL" and not entry.filename.startswith("__MACOSX"):
                found[name[2], name[1]] = _read(inside, entry, archive)
    names = sorted({name for name, _ in found})
    if not names:
        raise DataError(f"{archive}: holds no STS.input.NAME.txt; keep it as it is with --raw.")
    year = wanted.name.removeprefix("sts")
    made, unscored = [], 0
    for name in names:
        gold, text = (_text_lines(archive, found.get((name, kind), b"")) for kind in ("gs", "input"))
        pairs = [line.split("\t")[:2] for line in text]
        if len(gold) != len(pairs) or any(len(pair) < 2 for pair in pairs):
            raise DataError(f"{archive}: {name} has {len(gold)} scores for {len(pairs)} lines; keep it with --raw.")
        scored = [[score, *pair] for score, pair in zip(map(str.strip, gold), pairs, strict=True) if score]
        out = wanted.out / year / f"{name}.tsv"
        with pair_file(out, STS_COLUMNS) as add:
            add([[_cell(cell.encode()) for cell in row] for row in scored])
        made.append(MadeFile(out, STS_COLUMNS, len(scored)))
        unscored += len(pairs) - len(scored)
    return Made(made, {"no score": unscored})


def _text_lines(archive: Path, text: bytes) -> list[str]:
    try:
        return text.decode("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{archive}: holds a file that is not UTF-8 ({error}); keep it as it is with --raw.") from None


def _only(inside: zipfile.ZipFile, archive: Path, ending: str) -> str:
    names = [name for name in inside.namelist() if name.endswith(ending)]
    if len(names) != 1:
        raise DataError(f"{archive}: expected one file ending in {ending}, found {', '.join(inside.namelist())}.")
    return names[0]


def _rows(inside: zipfile.ZipFile, names: list[str], archive: Path) -> Iterator[Row]:
    """Line by line through all sides at once; BgtError where they differ in their number of lines."""
    with ExitStack() as stack:
        sides = [_lines(stack.enter_context(inside.open(name)), archive) for name in names]
        for row in zip_longest(*sides):
            if None in row:
                raise DataError(f"{archive}: {' and '.join(names)} differ in their number of lines.")
            yield row


def _lines(member: io.BufferedIOBase, archive: Path) -> Iterator[bytes]:
    while line := member.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise DataError(f"{archive}: has a line of more than {LONGEST_LINE} bytes; expected text.")
        yield _cell(line)


def _cell(line: bytes) -> bytes:
    """A line as a cell of a TSV."""
    return line.replace(b"\t", b" ").replace(b"\r", b" ").strip()


def _full(rows: Iterator[Row], left_out: Counter[str]) -> Iterator[Row]:
    """Those with text on every side; the others are counted."""
    for row in rows:
        if all(row):
            yield row
        else:
            left_out["empty side"] += 1


def _sample(rows: Iterator[Row], total: int, count: int, seed: int) -> Iterator[Row]:
    """`count` of the `total` rows, in order, each choice as likely as any other (Knuth, TAOCP 3.4.2, algorithm S)."""
    draw = random.Random(seed)
    for row in rows:
        if draw.random() * total < count:
            count -= 1
            yield row
        total -= 1


def _notes(inside: zipfile.ZipFile, archive: Path, wanted: Wanted) -> list[MadeFile]:
    """The licence and the read-me that came with it."""
    made = []
    for name in sorted({"LICENSE", "README"} & set(inside.namelist())):
        path = wanted.out / f"{wanted.stem}.{name}"
        content = _read(inside, inside.getinfo(name), archive)
        with writing(path):
            path.write_bytes(content)
        made.append(MadeFile(path))
    return made


def _read(inside: zipfile.ZipFile, entry: zipfile.ZipInfo, archive: Path) -> bytes:
    """A file that is small if it is what it should be."""
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
    """BgtError for what servers send in place of a text: a page, or the pointer of a large file."""
    with path.open("rb") as file:
        if (start := file.read(64).lower().lstrip()).startswith(SPOILT):
            raise DataError(f"{path}: not the text itself but {start[:30]!r}; the address no longer holds it.")
