"""A text file is read unchanged, whatever program wrote it, or raises an error that names the problem."""

import gzip
import io
import math
import re
import sys
from pathlib import Path

import pytest

from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.textfile import number, text_lines
from bgt_core.errors import DataError

FRENCH = "un café\nune étoile\n字\n"


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "excel.tsv"
    path.write_bytes("\ufeff1\ta\r\n\ufeff2\tb\n".encode())
    assert [*text_lines(path)] == [(1, "1\ta"), (2, "\ufeff2\tb")]


@pytest.mark.parametrize("sentences", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_only_line_feeds_end_lines(tmp_path: Path, sentences: bool, end: str) -> None:
    text = ["one\u2028two", "three\x85four", "five\x0bsix\x0cseven", "", "eight\x1cnine"]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(text) + end, encoding="utf-8", newline="")
    assert [line for _, line in text_lines(path, sentences=sentences)] == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\rtwo\rthree\r", "its lines end in a carriage return alone"),
        (b"one\rtwo", "its lines end in a carriage return alone"),
        (FRENCH.encode("utf-16"), "is in UTF-16; save it as UTF-8, for example by iconv -f UTF-16 -t UTF-8"),
        (FRENCH.encode("utf-16-le"), "iconv -f UTF-16LE "),
        (FRENCH.replace("\n", "\r\n").encode("utf-16-be"), "iconv -f UTF-16BE "),
        (FRENCH.encode("utf-32"), "iconv -f UTF-32 "),
        (FRENCH.encode("latin-1", "replace"), "text.txt:1: not UTF-8"),
        (b"one\ntwo\0\n", "text.txt:2: contains a NUL"),
        (gzip.compress(b"one\n"), "compressed by gzip; end its name in .gz"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"<!DOCTYPE html>\n", "a web page; save it as plain text"),
        (b"PK\x03\x04x", ".xlsx"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
@pytest.mark.parametrize("sentences", [False, True])
def test_other_files_are_refused_by_what_they_are(
    tmp_path: Path, content: bytes, message: str, sentences: bool
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        list(text_lines(path, sentences=sentences))
    assert message in str(error.value)
    with pytest.raises(DataError, match=r"text\.txt"):
        list(read_pairs(path, ("en", "fr"), Skipped(), strict=True))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pairs.tsv", "a cat\tun chat\na dog\tun chien\n", r"pairs\.tsv:1: 2 columns \(a cat \| un chat\)"),
        ("text.txt", "A title\na\tb\nc\td\n", r"text\.txt:1: 2 columns \(a \| b\)"),
        ("a.csv", "one, two\n", r"has records \(\.csv\)"),
        ("a.jsonl", '{"text": "a"}\n', r"records \(\.jsonl\)"),
        ("a.txt", '{"text": "a"}\n', r"records \(JSON\)"),
        ("a.txt", '"a, ""cat""","un chat"\n', r"records \(quoted CSV\)"),
        ("a.txt", "one\ntwo\rthree\n", r"a\.txt:2: a carriage return inside the line"),
    ],
)
def test_a_table_is_not_one_sentence_per_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(DataError, match=message):
        list(text_lines(path, sentences=True))
    assert "".join(f"{line}\n" for _, line in text_lines(path)) == content


def test_a_stray_tab_or_a_bracket_is_text(tmp_path: Path) -> None:
    path, text = (
        tmp_path / "text.txt",
        ['"Yes," she said, "now."', "[sic] one", "two\twords", "{three}", "four; five, six"],
    )
    path.write_text("\n".join(text), encoding="utf-8")
    assert [line for _, line in text_lines(path, sentences=True)] == text


def test_stdin_is_checked_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, message in ((FRENCH.encode("utf-16"), "- is in UTF-16"), (b"a\tb\n", "-:1: 2 columns")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(DataError, match=message):
            list(text_lines(Path("-"), sentences=True))


@pytest.mark.parametrize(
    ("line", "columns", "hint"),
    [
        ("Anglais;Français", 2, "';'"),
        ('"Hello, you",Bonjour', 2, "','"),
        ("5|a|b", 3, "'|'"),
        ("one sentence", 2, ""),
        ("a;b\tc", 3, ""),
        ("a\rb", 2, "carriage return"),
    ],
)
def test_the_separator_of_a_table_is_guessed(tmp_path: Path, line: str, columns: int, hint: str) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(f"{line}\n", encoding="utf-8", newline="")
    with pytest.raises(DataError, match=re.escape(hint) or r"\)$"):  # without a hint, the message ends with ")"
        list(read_pairs(path, ["a", "b", "c"][:columns], Skipped(), strict=True))


def test_a_number_has_a_decimal_point() -> None:
    for text in ("5,5", "1 234,5", "1_000", "1,234,567", "NaN", "-Infinity", "", "four", "-1e400"):
        assert math.isnan(number(text)), text
    assert [*map(number, ("4.2", " 4.2 ", "\u00a04", "-1e-3", "４.２", ".5"))] == [4.2, 4.2, 4, -0.001, 4.2, 0.5]
