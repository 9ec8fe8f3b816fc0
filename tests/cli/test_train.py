"""Progress and tables: drawn on a terminal, plain elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from bgt_core.cli.options import rows_bar
from bgt_core.cli.train import Progress

DATA = {"kind": "data", "pairs": {"kept": 9, "too short": 1}, "skipped": ["a.tsv:2: 1 column, expected 2 (en, fr)"]}
TRAIN = {"kind": "train", "step": 3, "steps": 10, "loss": 12.5, "tokens_per_second": 4321.0}
VALID = {"kind": "valid", "step": 3, "steps": 10, "elbo": -81.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    with Progress() as progress:
        for row in (DATA, TRAIN, VALID):
            progress(row)
    return stream.getvalue()


def test_plain_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch).splitlines() == [
        "data: 9 kept, 1 too short",
        "skipped a.tsv:2: 1 column, expected 2 (en, fr)",
        "train 3/10 loss 12.5 tokens_per_second 4321",
        "valid 3/10 elbo -81.25",
    ]


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    drawn = told(Terminal(), monkeypatch)
    for part in ("loss 12.5, 4,321 tokens/s", "3/10", "valid 3/10 elbo -81.25", "skipped a.tsv:2"):
        assert part in drawn
    assert "train 3/10" not in drawn  # the bar shows it


def test_rows_done_show_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for terminal in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr("sys.stderr", stream)
        with rows_bar("x.npy") as report:
            report(5, 20)
        assert bool(re.search(r"x\.npy.* 25%", stream.getvalue())) == bool(stream.getvalue()) == terminal
