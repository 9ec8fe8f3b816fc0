"""Text of uploaded tables, as spreadsheets of any country write it: its encoding, its separator, its quotes."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from bgt_core.data.textfile import NOT_TEXT
from bgt_core.errors import DataError

MARKS = {  # the first bytes of a file -> its encoding; UTF-32's begin like UTF-16's
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WIDE = ("UTF-32-LE", "UTF-32-BE", "UTF-16-LE", "UTF-16-BE")
SEPARATORS = "\t;|,"  # the likelier first: a decimal comma may be in every row
SAMPLE = 1_000  # rows that tell the separator
EVEN = 0.5  # of the rows have as many columns, by a separator
ADVICE = "Save it as CSV (UTF-8)"
csv.field_size_limit(2**31 - 1)  # characters in a cell: only the size of the file is limited


def decoded(name: str, content: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark; each line ends in a line feed.

    DataError names another kind of file or another encoding, as far as it can be told.
    """
    start = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if what := next((what for mark, what in NOT_TEXT.items() if start.startswith(mark)), ""):
        raise DataError(f"{name}: {what.partition(';')[0]}, not text. {ADVICE}.")
    encoding = next((encoding for mark, encoding in MARKS.items() if content.startswith(mark)), "utf-8-sig")
    try:
        text = content.decode(encoding)
        at = text.find("\0")
    except UnicodeDecodeError as error:
        at = error.start
    if at < 0:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    guess, line = guessed(content), content[:at].count(b"\n") + 1
    if b"\0" in content and not guess:
        raise DataError(f"{name}: not text. {ADVICE}, or as .parquet.")
    raise DataError(f"{name}:{line}: not UTF-8{guess and f', but perhaps {guess}'}. {ADVICE}.")


def guessed(content: bytes) -> str:
    """The encoding of bytes that are not UTF-8; "" if it can't be told."""
    if b"\0" not in content:  # in the languages of Windows-1252 most letters are ASCII
        return "Windows-1252" if sum(byte > 127 for byte in content) < 0.3 * len(content) else ""
    for encoding in WIDE:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if re.sub(r"[\t\r\n]", "", text).isprintable():
            return f"{encoding[:6]} without a byte order mark"
    return ""


def rows_of(name: str, text: str, usual: str, most: int) -> list[list[str]]:
    """The first `most` rows of a table that are not blank.

    The separator is the one that Excel declares (sep=;) unless a program that used another one saved the file again
    (sep=,;), or the one by which most rows have as many columns, else the
    `usual` one. Cells may be quoted. Raises DataError for quotes that do not match.
    """
    if declared := re.match(r'"?sep=([^\w\s"]|\t)"?([,;|\t]*) *\n', text, re.IGNORECASE):
        text = text[declared.end() :]
    text = re.sub(r"\n{2,}", "\n", text)  # reading millions of blank lines takes a minute
    separator = declared[1] if declared and not declared[2] else separator_of(text, usual)
    try:
        return list(islice(rows(text, separator), most))
    except csv.Error as error:
        raise DataError(f"{name}: not CSV ({error}); quote cells that hold a comma or a quote.") from None


def separator_of(text: str, usual: str) -> str:
    """The separator of a table. A comma or semicolon before a space is prose, unless it is the usual separator; a comma
    that is not the usual one separates only where a line ends in a quoted cell after it."""
    fits = {}
    commas = usual == "," or re.search(r'",\s*"(?:[^"]|"")*"$', text, re.MULTILINE)
    for separator in SEPARATORS if commas else SEPARATORS.replace(",", ""):
        try:
            widths = list(map(len, islice(rows(text, separator), SAMPLE)))
        except csv.Error:
            continue
        ((width, count),) = Counter(widths).most_common(1) or [(1, 0)]
        prose = len(re.findall(f'{separator} [^"]', text)) / (1 + text.count(separator)) if separator in ",;" else 0
        share = count / len(widths) if widths else 0
        sure = prose < 0.5 or (usual == "," and share == 1)
        if width > 1 and (separator == usual or (share >= EVEN and sure and len(widths) > (usual != ","))):
            fits[separator] = share, -prose
    return max(fits, key=fits.__getitem__, default=usual)


def rows(text: str, separator: str) -> Iterator[list[str]]:
    """The rows that are not blank. Quotes enclose cells; between tabs they may instead be part of the text."""
    return between_tabs(text) if separator == "\t" and not quoted(text) else enclosed(text, separator)


def enclosed(text: str, separator: str) -> Iterator[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    return (row for row in lines if any(map(str.strip, row)))


def between_tabs(text: str) -> Iterator[list[str]]:
    return (line.split("\t") for line in text.split("\n") if line.strip())


def quoted(text: str) -> bool:
    """Whether quotes enclose cells between tabs: all cells, or as Excel does it, those with a quote, comma, tab or
    line break inside. If not, they are part of the text, as in a list of sentences."""
    if '"' not in text:
        return False
    try:
        widths = Counter(map(len, enclosed(text, "\t")))
    except csv.Error:
        return False
    lines = Counter(map(len, between_tabs(text)))
    if widths != lines:  # a cell holds a tab or a line break, or a quotation in the text runs over whole lines
        return len(widths) == 1 and not (len(lines) == 1 and lines.total() > widths.total())
    reasons = Counter(  # None for a cell without quotes around it
        None if before.strip() == after.strip() else bool(re.search('[",;]', after))
        for row, again in zip(between_tabs(text), enclosed(text, "\t"), strict=True)
        for before, after in zip(row, again, strict=False)
        if not re.fullmatch(r"[\s\d.,+-]*", before)
    )
    return not (reasons[None] and reasons[False])
