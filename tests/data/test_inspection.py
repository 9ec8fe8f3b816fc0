"""Files against their records: whatever is changed is found, and the line is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bgt_core.data import manifest
from bgt_core.data.clean import clean
from bgt_core.data.inspection import inspect, inspect_table
from bgt_core.errors import BgtError

LANGS = ("en", "fr")
TEXT = "".join(f"sentence {number}\tphrase {number}\n" for number in range(40)).encode()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder of one prepared table, with its card."""
    (tmp_path / "in.tsv").write_bytes(TEXT)
    clean([tmp_path / "in.tsv"], LANGS, tmp_path / "data" / "out.tsv")
    return tmp_path / "data" / "out.tsv"


def test_what_is_as_recorded_is_good(made: Path) -> None:
    for path in (made, made.parent):
        assert inspect(path) == [(made, 40, [])]


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (TEXT + b"one\tmore\n", ["bytes, expected", "SHA-256 .* expected", "41 rows, expected 40"]),
        (TEXT.replace(b"phrase 7\n", b"phrase 8\n"), ["SHA-256"]),
        (TEXT.replace(b"\tphrase 7\n", b"\n"), ["bytes", "SHA-256", r"line 8: 1 column, expected 2 \(en, fr\)"]),
        (TEXT.replace(b"e 3\tphrase 3\n", b"\xe9 3\tphrase 3\n"), ["SHA-256", "line 4: byte 0xe9 is not UTF-8"]),
        (TEXT.replace(b"phrase 5\n", b" \n"), ["bytes", "SHA-256", "line 6: the fr side is empty"]),
        (TEXT.replace(b"\t", b" "), ["SHA-256", *["line .* 1 column,"] * 20, "20 more bad lines"]),
        (None, ["missing"]),
    ],
)
def test_what_is_changed_is_found(content: bytes | None, problems: list[str], made: Path) -> None:
    made.unlink() if content is None else made.write_bytes(content)
    (finding,) = inspect(made)
    assert len(finding.problems) == len(problems), finding.problems
    for problem, expected in zip(finding.problems, problems, strict=True):
        assert re.search(expected, problem)


def test_damaged_compression_is_a_problem_not_a_stop(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_bytes(TEXT)
    for name in ("a.tsv.gz", "b.parquet", "c.tsv.zst"):
        clean([tmp_path / "in.tsv"], LANGS, tmp_path / "data" / name)
        (tmp_path / "data" / name).write_bytes((tmp_path / "data" / name).read_bytes()[:-9])
    findings = inspect(tmp_path / "data")
    assert [finding.path.name for finding in findings] == ["a.tsv.gz", "b.parquet", "c.tsv.zst"]
    assert all("damaged" in finding.problems[-1] for finding in findings)


def test_a_table_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes(TEXT + b"alone\n")
    assert inspect_table(tmp_path / "t.tsv", LANGS) == (
        tmp_path / "t.tsv",
        41,
        ["line 41: 1 column, expected 2 (en, fr)"],
    )
    (tmp_path / "empty.tsv").write_bytes(b"")
    assert inspect_table(tmp_path / "empty.tsv", LANGS).problems == ["no rows"]
    with pytest.raises(BgtError, match="has no card and is in no manifest"):
        inspect(tmp_path / "t.tsv")
    with pytest.raises(BgtError, match=r"has no bgt-data\.json and no card"):
        inspect(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": "bgt-data/9", "sources": {}, "files": {}}'])
def test_a_damaged_manifest_or_card_is_said(content: str, made: Path) -> None:
    (made.parent / manifest.NAME).write_text(content)
    with pytest.raises(BgtError, match=r"bgt-data\.json: damaged"):
        inspect(made.parent)
    (made.parent / manifest.NAME).unlink()
    manifest.card_path(made).write_text(content)
    with pytest.raises(BgtError, match=r"out\.tsv\.json: damaged"):
        inspect(made)
