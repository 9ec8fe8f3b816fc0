"""`bgt app`: the server that it starts, and its errors."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.web import cli

from app.core import startup


def test_it_starts_the_app_with_the_options_that_the_app_reads(
    bgt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(cli, "main", lambda arguments, prog_name: given.extend(arguments))
    done = bgt(
        "app", "--no-browser", "--port", 9000, "--model", "baseline:tfidf", "--data", "en,fr=a.tsv", "--data", "b"
    )
    assert done.code == 0, done.err
    before, after = given[: given.index("--")], given[given.index("--") + 1 :]
    assert before[0] == "run" and Path(before[1]).parts[-2:] == ("app", "main.py") and Path(before[1]).is_file()
    assert before[2:] == ["--server.port=9000", "--server.headless=true"]
    assert after == ["--model", "baseline:tfidf", "--data", "en,fr=a.tsv", "--data", "b"]
    options = startup.read(after[:4])
    assert next(iter(options.models.values())) == "baseline:tfidf" and "a.tsv (en-fr)" in options.texts


def test_it_names_what_is_missing_or_wrong(bgt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--port 70000: expected a port from 1 to 65535" in bgt("app", "--port", 70_000).err
    find = importlib.util.find_spec
    monkeypatch.setattr("bgt_core.cli.models.find_spec", lambda name: None if name == "streamlit" else find(name))
    done = bgt("app")
    assert done.code == 3 and 'pip install "bgt[app]"' in done.err
