"""Bulk embedding: what a file costs beside its sentences in memory, and memory on many lines against few.

The model is the one that ships, its fast semantic latent, where everything beside the model weighs most. Text is drawn
from the project's grammar.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import bgt_core
from benchmarks.measure import Measurement, interleave, over, page
from bgt_core import bulk
from bgt_core.grammar import pairs
from bgt_core.vectors.file import ResumableWriter

DISTINCT, SPEED, FEW, MANY = 25_000, 50_000, 50_000, 200_000  # lines
MEMORY_ROUNDS = 3  # a peak hardly varies, and each takes two processes

# In a fresh process, which prints its memory once the model is loaded and its peak, in KiB, both from Linux's /proc:
# `getrusage` would include the process it was forked from.
EMBED = """
import sys
from pathlib import Path
import torch
import bgt_core
from bgt_core import bulk
def show(name):
    print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)))
torch.set_num_threads(1)
model = bgt_core.load(device="cpu")
show("VmRSS")
bulk.embed_file(model, Path(sys.argv[1]), Path(sys.argv[2]), lang="en")
show("VmHWM")
"""


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Speed, then memory."""
    sentences = [pair.texts["en"] for pair in pairs(DISTINCT, seed=1)]
    with TemporaryDirectory() as folder:
        yield speed(Path(folder), sentences, options)
        yield memory(Path(folder), sentences)


def speed(folder: Path, sentences: list[str], options: argparse.Namespace) -> Measurement:
    """A file to a file, against the same chunks of sentences in memory."""
    model = bgt_core.load(device="cpu")
    source, out = write(folder / "text.txt", sentences, SPEED), folder / "vectors.npy"
    lines = sentences * (SPEED // DISTINCT)
    chunks = [lines[at : at + bulk.CHUNK] for at in range(0, SPEED, bulk.CHUNK)]

    def ours(_: int) -> None:
        out.unlink(missing_ok=True)
        bulk.embed_file(model, source, out, lang="en")

    def peer(_: int) -> list[np.ndarray]:
        return [model.embed(chunk, lang="en") for chunk in chunks]

    expected = peer(0)

    def save(_: int) -> None:
        with ResumableWriter(folder / "saved.npy", expected[0].shape[1]) as rows:
            rows.resume({})
            for vectors in expected:
                rows.append(vectors)
        (folder / "saved.npy").unlink()

    def read(_: int) -> None:
        for _ in range(2):  # to check the text, then to embed it
            bulk.validate_and_hash(source, source)

    streamed, held = interleave(ours, peer, options.threads, options.rounds)
    spent = {"the model": held} | dict(
        zip(("reading", "writing"), interleave(read, save, options.threads, options.rounds), strict=True)
    )
    times = {name: statistics.median(seconds) for name, seconds in spent.items()}
    differ = sum(not np.array_equal(*pair) for pair in zip(np.load(out), np.concatenate(expected), strict=True))
    return Measurement(
        work=f"embedding a file of {SPEED:,} lines, restartable",
        against="Embedder.embed of the same chunks in memory",
        ratios=over(held, streamed),
        target=">= 0.85",
        ours=f"{SPEED / statistics.median(streamed):,.0f} lines/s",
        peer=f"{SPEED / times['the model']:,.0f} sentences/s",
        error=f"rows that differ: {differ}",
        floor=f"the model alone, {times['the model']:.2f} s",
        reached=times["the model"] / statistics.median(streamed),
        bottleneck=", ".join(f"{name} {100 * part / sum(times.values()):.0f}%" for name, part in times.items()),
    )


def memory(folder: Path, sentences: list[str]) -> Measurement:
    """The peak on many lines over that on few."""
    few, many = (write(folder / f"{size}.txt", sentences, size) for size in (FEW, MANY))
    peaks = [(peak(few), peak(many)) for _ in range(MEMORY_ROUNDS)]
    small, large = (statistics.median(most for _, most in side) for side in zip(*peaks, strict=True))
    loaded = statistics.median(before for _, (before, _) in peaks)
    return Measurement(
        work=f"peak memory of embedding {MANY:,} lines",
        against=f"that of {FEW:,} lines",
        ratios=[most / least for (_, least), (_, most) in peaks],
        target="<= 1.1",
        ours=f"{large:.0f} MiB",
        peer=f"{small:.0f} MiB",
        error="of the whole process, Python and torch included",
        floor="the same memory for any text",
        reached=small / large,
        bottleneck=f"{loaded:.0f} MiB are held once the model is loaded, {large - loaded:.0f} MiB come with a chunk",
    )


def write(path: Path, sentences: list[str], size: int) -> Path:
    """A file of `size` lines, the sentences over and over."""
    text = "\n".join(sentences) + "\n"
    with path.open("w", encoding="utf-8") as file:
        for _ in range(size // len(sentences)):
            file.write(text)
    return path


def peak(source: Path) -> tuple[float, float]:
    """MiB held when the model is loaded, and at most while `source` is embedded."""
    out = source.with_name("peak.npy")
    out.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-c", EMBED, source, out], check=True, stdout=subprocess.PIPE)
    loaded, most = (int(kib) / 1024 for kib in done.stdout.split())
    return loaded, most


if __name__ == "__main__":
    page(rows, __doc__)
