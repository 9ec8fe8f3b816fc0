"""Fixtures for end-to-end tests: sentences in English, French and an artificial language; a way to write TSV files."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from bgt_core.grammar import pairs

ROOT = Path(__file__).resolve().parents[2]
WORDS = 5
LETTERS = str.maketrans("aeiouwth", "äöüaefzc")


def german(text: str) -> str:
    """Translate English into an artificial language: change the first letter of each word, and append "n"."""
    return re.sub(r"[a-z]+", lambda word: f"{word[0].translate(LETTERS)}n", text.lower())


@pytest.fixture(scope="session")
def texts() -> dict[str, list[str]]:
    """1,500 short sentences, each in English, French, and an artificial language with the code "de"."""
    short = [pair for pair in pairs(8_000, seed=1) if len(pair.texts["en"].split()) <= WORDS][:1_500]
    assert len(short) == 1_500
    bilingual = {lang: [pair.texts[lang] for pair in short] for lang in ("en", "fr")}
    return bilingual | {"de": [german(text) for text in bilingual["en"]]}


@pytest.fixture(scope="session")
def write_rows() -> Callable[[Path, Iterable[Sequence[object]]], Path]:
    """write_rows(path, rows): write rows to a TSV file, and return its path."""

    def write(path: Path, rows: Iterable[Sequence[object]]) -> Path:
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
