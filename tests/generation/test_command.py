"""Programs of others as translators: real ones, good and bad."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path

import pytest

from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.generation.command import CommandTranslator


def program(code: str) -> str:
    """A command that runs this Python."""
    return shlex.join([sys.executable, "-c", "import sys; " + code])


def test_a_line_for_each_sentence() -> None:
    translator = CommandTranslator("tr a-z A-Z")
    written = translator.translate(["un chat", "deux\nchiens", "où ?"])
    assert [[each.text for each in of_one] for of_one in written] == [["UN CHAT"], ["DEUX CHIENS"], ["Où ?"]]
    assert all(math.isnan(of_one[0].cost) for of_one in written)
    assert translator.translate([]) == []
    assert translator.fingerprint == "tr a-z A-Z"


def test_what_is_written_is_cleaned_up_as_all_text() -> None:
    code = "sys.stdin.read(); sys.stdout.write('one\\ttab \\r\\nno line feed at the end')"
    written = CommandTranslator(program(code)).translate(["a", "b"])
    assert [of_one[0].text for of_one in written] == ["one tab", "no line feed at the end"]


def test_there_is_no_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="wrote 1 lines for 2 sentences"):
        CommandTranslator("echo $(touch made) | cat; touch made > made").translate(["a", "b"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        ("", UsageError, "is empty; expected a program and its arguments"),
        ("cat 'half", UsageError, "No closing quotation"),
        ("no-such-program -x", NotFound, "no-such-program: no such program"),
        (program("sys.exit(3)"), DataError, "failed, with exit status 3"),
        (program("pass"), DataError, "wrote 0 lines for 2 sentences; expected one for each"),
        ("head -n 1", DataError, "wrote 1 lines for 2 sentences; expected one for each"),
        (program("print('a\\nb\\nc')"), DataError, "wrote 3 lines for 2 sentences"),
        (program("sys.stdout.buffer.write(b'caf\\xe9\\nb\\n')"), DataError, "its output is not UTF-8"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(command: str, error: type[BgtError], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        CommandTranslator(command).translate(["un", "deux"])
    assert "\n" not in str(raised.value)
