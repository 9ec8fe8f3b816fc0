"""The examples on a Dask cluster, on a real one: two worker processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from bgt_core import bulk
from bgt_core.grammar import Pair
from bgt_core.splitting import store

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, example: str, *arguments: str | Path) -> list[str]:
    """The lines that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, ROOT / "examples" / example, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_two_workers_write_what_one_process_does(saved: Path, grammar: list[Pair], tmp_path: Path) -> None:
    sentences = [pair.texts["en"] for pair in grammar]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"{sentences[at % 300]} {sentences[at // 300]}" for at in range(20_000)))  # three chunks
    model, alone, out = bgt_core.load(saved, "cpu"), tmp_path / "alone.npy", tmp_path / "vectors.npy"
    bulk.embed_file(model, text, alone, lang="en")
    first = bulk.embed_file(model, text, out, lang="en", shard=(1, 3)).path  # an earlier job came this far
    written = first.stat().st_mtime_ns

    *parts, whole = run(tmp_path, "embed_on_dask.py", text, out, "--shards", "3", "--model", saved)
    assert sorted(parts) == [
        f"{tmp_path}/vectors-0000{number}-of-00003.npy: {rows} x 12"
        for number, rows in ((1, 8192), (2, 8192), (3, 20_000 - 2 * 8192))
    ]
    assert whole == f"{out}: 20000 x 12"
    assert out.read_bytes() == alone.read_bytes()
    assert first.stat().st_mtime_ns == written  # not made again


@pytest.mark.slow
def test_two_workers_sum_the_split_that_one_process_fits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((3_001, 4))
    columns = [shared @ rng.standard_normal((4, 6)) + 0.5 * rng.standard_normal((3_001, 6)) for _ in range(2)]
    for lang, column in zip(["en", "fr"], columns, strict=True):
        np.save(tmp_path / f"x.{lang}.npy", column.astype(np.float32))
    alone = bgt_core.split(None, [(["en", "fr"], columns)], method="neural")
    (line,) = run(tmp_path, "split_on_dask.py", "x", "--out", "split", "--parts", "3", "--method", "neural")
    assert line == f"split: {alone.shared_width} shared units of 6, from {alone.about['rows']:,} rows"
    merged = store.load(tmp_path / "split").split
    for lang, vectors in zip(["en", "fr"], columns, strict=True):
        for ours, theirs in zip(merged.parts(vectors, lang), alone.parts(vectors, lang), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-3)
