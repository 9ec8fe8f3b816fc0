"""Bulk embedding: what a file costs beside its sentences in memory. `growth` has what it takes in memory.

The model is the one that ships, in its fast semantic latent, where everything beside the model weighs most. Words are
those of the project's grammar; sentences are as long as those of mixed real text: lognormal, a median of 8 words, a
mean of 11.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import bgt_core
from benchmarks.measure import Measurement, interleave, over, page
from bgt_core import bulk
from bgt_core.grammar import pairs
from bgt_core.vectors.file import ResumableWriter

SPEED = 50_000  # lines
WORDS, SPREAD, LONGEST = 8, 0.8, 150  # words of a sentence: median, standard deviation of the logarithm, maximum


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    with TemporaryDirectory() as folder:
        yield speed(Path(folder), texts(SPEED), options)


def speed(folder: Path, lines: list[str], options: argparse.Namespace) -> Measurement:
    """A file to a file, against the same chunks of sentences in memory."""
    model = bgt_core.load(device="cpu")
    source, out = write(folder / "text.txt", lines), folder / "vectors.npy"
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
        target=">= 0.97",
        ours=f"{SPEED / statistics.median(streamed):,.0f} lines/s",
        peer=f"{SPEED / times['the model']:,.0f} sentences/s",
        error=f"rows that differ: {differ}",
        floor=f"the model alone, {times['the model']:.2f} s",
        reached=times["the model"] / statistics.median(streamed),
        bottleneck=", ".join(f"{name} {100 * part / sum(times.values()):.0f}%" for name, part in times.items()),
    )


def texts(count: int) -> list[str]:
    """Lines of the grammar's words, of realistic lengths."""
    draw = np.random.default_rng(0)
    words = [word for pair in pairs(count // 4, seed=1) for word in pair.texts["en"].split()]
    lengths = np.clip(np.round(WORDS * np.exp(draw.normal(0, SPREAD, count))), 1, LONGEST).astype(int)
    starts = draw.integers(len(words) - LONGEST, size=count)
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def write(path: Path, lines: list[str]) -> Path:
    """A file of these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    page(rows, __doc__)
