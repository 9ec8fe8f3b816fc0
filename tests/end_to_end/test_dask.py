"""The example that embeds on a Dask cluster, on a real one: two worker processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bgt_core
from bgt_core import bulk
from bgt_core.grammar import Pair

ROOT = Path(__file__).resolve().parents[2]


def test_two_workers_write_what_one_process_does(saved: Path, grammar: list[Pair], tmp_path: Path) -> None:
    sentences = [pair.texts["en"] for pair in grammar]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"{sentences[at % 300]} {sentences[at // 300]}" for at in range(20_000)))  # three chunks
    model, alone, out = bgt_core.load(saved, "cpu"), tmp_path / "alone.npy", tmp_path / "vectors.npy"
    bulk.embed_file(model, text, alone, lang="en")
    first = bulk.embed_file(model, text, out, lang="en", shard=(1, 3)).path  # an earlier job came this far
    written = first.stat().st_mtime_ns

    command = [sys.executable, ROOT / "examples" / "embed_on_dask.py", text, out, "--shards", "3", "--model", saved]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *parts, whole = done.stdout.splitlines()
    assert sorted(parts) == [
        f"{tmp_path}/vectors-0000{number}-of-00003.npy: {rows} x 12"
        for number, rows in ((1, 8192), (2, 8192), (3, 20_000 - 2 * 8192))
    ]
    assert whole == f"{out}: 20000 x 12"
    assert out.read_bytes() == alone.read_bytes()
    assert first.stat().st_mtime_ns == written  # not made again
