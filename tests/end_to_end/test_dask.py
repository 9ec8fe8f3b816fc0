"""The Dask examples run on a real Dask cluster, with two worker processes on this machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from bgt_core import bulk
from bgt_core.grammar import Pair
from bgt_core.neighbours.bitext import mine, read_sentences, read_vectors, write_pairs

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


def command_of(example: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, str(ROOT / "examples" / example), *map(str, arguments)]


def run(folder: Path, example: str, *arguments: str | Path) -> list[str]:
    """Run an example as a script, and return the lines that it prints."""
    command = command_of(example, *arguments)
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_two_workers_write_the_vectors_of_one_process(saved: Path, grammar: list[Pair], tmp_path: Path) -> None:
    sentences = [pair.texts["en"] for pair in grammar]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"{sentences[at % 300]} {sentences[at // 300]}" for at in range(20_000)))  # for 3 shards
    model, alone, out = bgt_core.load(saved, "cpu"), tmp_path / "alone.npy", tmp_path / "vectors.npy"
    bulk.embed_file(model, text, alone, lang="en")
    first = bulk.embed_file(model, text, out, lang="en", shard=(1, 3)).path  # shard 1 is already written
    written = first.stat().st_mtime_ns

    *parts, whole = run(tmp_path, "embed_on_dask.py", text, out, "--shards", "3", "--model", saved)
    assert sorted(parts) == [
        f"{tmp_path}/vectors-0000{number}-of-00003.npy: {rows} x 12"
        for number, rows in ((1, 8192), (2, 8192), (3, 20_000 - 2 * 8192))
    ]
    assert whole == f"{out}: 20000 x 12"
    assert out.read_bytes() == alone.read_bytes()
    assert first.stat().st_mtime_ns == written  # the cluster did not compute the first shard again


def test_a_killed_job_is_resumed_and_finds_the_pairs_of_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shared, texts, vectors = rng.standard_normal((3_000, 12)), [], []
    for lang in ("en", "fr"):
        texts.append(tmp_path / f"{lang}.txt")
        texts[-1].write_text("\n".join(f"{lang} {row}" for row in range(3_000)))
        vectors.append(tmp_path / f"{lang}.npy")
        np.save(vectors[-1], (shared + 0.3 * rng.standard_normal(shared.shape)).astype(np.float32))
    sentences = [read_sentences(path) for path in texts]
    rows = [read_vectors(path, text) for path, text in zip(vectors, sentences, strict=True)]
    mined = mine(*rows, index="approximate", threshold=1.1)
    assert mined.plan.nlist > 1
    assert len(mined.pairs.scores) > 500
    write_pairs(tmp_path / "alone.tsv", mined.pairs, *sentences)

    arguments = (*texts, "pairs.tsv", "--vectors", *vectors, "--parts", "3", "--threshold", "1.1")
    job = subprocess.Popen(command_of("mine_on_dask.py", *arguments), cwd=tmp_path, env=ENVIRONMENT)
    parts, first = tmp_path / "pairs.tsv.parts", tmp_path / "pairs.tsv.parts" / "held-0-0.npz"
    while not first.exists():
        assert job.poll() is None
        time.sleep(0.01)
    job.kill()
    job.wait()
    written = first.stat().st_mtime_ns
    changed = [*arguments, "--k", "5"]
    refused = subprocess.run(
        command_of("mine_on_dask.py", *changed), cwd=tmp_path, env=ENVIRONMENT, capture_output=True
    )
    assert b"holds parts of another job" in refused.stderr
    assert refused.returncode == 1
    assert first.stat().st_mtime_ns == written
    (line,) = run(tmp_path, "mine_on_dask.py", *arguments)
    assert line.startswith(f"pairs.tsv: {len(mined.pairs.scores):,} pairs")
    assert (tmp_path / "pairs.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()
    assert not parts.exists()
