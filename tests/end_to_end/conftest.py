"""Shared by runs from text to vectors: a third language, and a process that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from bgt_core import checkpoint
from bgt_core.grammar import pairs

ROOT = Path(__file__).resolve().parents[2]
WORDS = 5
LETTERS = str.maketrans("aeiouwth", "äöüaefzc")


def german(text: str) -> str:
    """English, word for word in a language of its own: other letters, another ending, the same punctuation."""
    return re.sub(r"[a-z]+", lambda word: f"{word[0].translate(LETTERS)}n", text.lower())


@pytest.fixture(scope="session")
def texts() -> dict[str, list[str]]:
    """Short sentences, 1,500, each in English, French and what stands for German."""
    short = [pair for pair in pairs(8_000, seed=1) if len(pair.texts["en"].split()) <= WORDS][:1_500]
    assert len(short) == 1_500
    bilingual = {lang: [pair.texts[lang] for pair in short] for lang in ("en", "fr")}
    return bilingual | {"de": [german(text) for text in bilingual["en"]]}


@pytest.fixture(scope="session")
def write_rows() -> Callable[[Path, Iterable[Sequence[object]]], Path]:
    """write_rows(path, rows): a TSV; returns its path."""

    def write(path: Path, rows: Iterable[Sequence[object]]) -> Path:
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def killed_run() -> Callable[..., int]:
    """killed_run(recipe, settings, out, *options): `bgt train` in a process that is killed once it has saved a
    checkpoint; returns the step of its newest."""

    def start(recipe: str, settings: Mapping[str, object], out: Path, *options: str) -> int:
        sets = [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
        code = "import torch; torch.set_num_threads(1); from bgt_core.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "train", recipe, *options, *sets, f"--out={out}", "--device=cpu"],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 120
        while not (out.exists() and checkpoint.steps_of(out)):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "no checkpoint in two minutes"
            time.sleep(0.002)
        process.kill()
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        return int(checkpoint.load(out).config["step"])

    return start
