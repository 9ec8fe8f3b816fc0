"""Bulk embedding: what a file costs beside its sentences in memory, and memory on many lines against few.

Speed is that of the model that ships in its fast semantic latent, where everything beside the model weighs most. Memory
is that of both its latents, of which the language one is a Transformer, and of the Transformers of the recipe `bgt`,
untrained. Words are those of the project's grammar; sentences are as long as those of mixed real text: lognormal, a
median of 8 words, a mean of 11.
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
from bgt_core import PRETRAINED, bulk, checkpoint, recipes
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import pairs
from bgt_core.vectors.file import ResumableWriter

SPEED, FEW, MANY = 50_000, 20_000, 200_000  # lines
WORDS, SPREAD, LONGEST = 8, 0.8, 150  # of a sentence: median words, deviation of their logarithm, most words
BGT = {"model.d_model": 256, "model.encoder_layers": 3, "model.ffn_dim": 256, "data.vocab_size": 8_000}

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
folder, latent, source, out = sys.argv[1:]
model = bgt_core.load(folder, device="cpu")
show("VmRSS")
bulk.embed_file(model, Path(source), Path(out), lang="en", latent=latent)
show("VmHWM")
"""


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Speed, then memory."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        lines = texts(MANY)
        few, many = (write(folder / f"{size}.txt", lines[:size]) for size in (FEW, MANY))
        yield speed(folder, lines[:SPEED], options)
        for latent in ("semantic", "language"):
            yield memory(few, many, PRETRAINED, latent, f"{latent} latent of the model that ships")
        tokenizer = Tokenizer.load(PRETRAINED / "tokenizer.model")
        recipe = recipes.build("bgt", BGT)
        checkpoint.save(folder / "bgt", recipe, recipe.build(tokenizer), tokenizer, 0)
        yield memory(few, many, folder / "bgt", "language", "`bgt`, d=256, 3 layers")


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
        target=">= 0.95",
        ours=f"{SPEED / statistics.median(streamed):,.0f} lines/s",
        peer=f"{SPEED / times['the model']:,.0f} sentences/s",
        error=f"rows that differ: {differ}",
        floor=f"the model alone, {times['the model']:.2f} s",
        reached=times["the model"] / statistics.median(streamed),
        bottleneck=", ".join(f"{name} {100 * part / sum(times.values()):.0f}%" for name, part in times.items()),
    )


def memory(few: Path, many: Path, model: Path, latent: str, name: str) -> Measurement:
    """The peak on many lines over that on few."""
    (_, small), (loaded, large) = (peak(model, latent, source) for source in (few, many))
    return Measurement(
        work=f"peak memory of embedding {MANY:,} lines, {name}",
        against=f"that of {FEW:,} lines",
        ratios=[large / small],
        target="<= 1.1",
        ours=f"{large:.0f} MiB",
        peer=f"{small:.0f} MiB",
        error="of the whole process, Python and torch included",
        floor="the same memory for any text",
        reached=small / large,
        bottleneck=f"{loaded:.0f} MiB are held once the model is loaded, {large - loaded:.0f} MiB come with the text",
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


def peak(model: Path, latent: str, source: Path) -> tuple[float, float]:
    """MiB held when the model is loaded, and at most while `source` is embedded."""
    out = source.with_name("peak.npy")
    out.unlink(missing_ok=True)
    command = [sys.executable, "-c", EMBED, str(model), latent, str(source), str(out)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    loaded, most = (int(kib) / 1024 for kib in done.stdout.split())
    return loaded, most


if __name__ == "__main__":
    page(rows, __doc__)
