"""`bgt mine`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError


def mine(
    left: Annotated[Path, typer.Argument(metavar="A", help="One sentence per line (.gz, .xz, .zst too).")],
    right: Annotated[Path, typer.Argument(metavar="B", help="The same, in another language.")],
    out: Annotated[
        Path, typer.Option(help="Output file, a TSV: score, line of A, line of B, both sentences; best first.")
    ],
    langs: Annotated[str | None, typer.Option(help="Languages of A and B, as in en,fr.")] = None,
    vectors: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.npy B.npy", help="Instead of --langs: vectors that `bgt embed` made of A and B."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Number of neighbours that a margin is relative to.")] = 4,
    margin: Annotated[str, typer.Option(help="Margin: ratio, distance or absolute (the plain cosine).")] = "ratio",
    threshold: Annotated[float, typer.Option(help="Minimum score of a pair.", show_default="all kept")] = -math.inf,
    index: Annotated[str, typer.Option(help="exact, or approximate for 100,000 lines or more.")] = "exact",
    recall: Annotated[
        float, typer.Option(help="Share of the nearest neighbours that approximate search must find.")
    ] = 0.95,
    gold: Annotated[
        Path | None, typer.Option(help="Known translations, line of A <tab> line of B: prints how many are found.")
    ] = None,
    model: options.EncoderOption = str(PRETRAINED),
    device: options.DeviceOption = "auto",
) -> None:
    """Find translations in two texts, by the margin of their cosine over that of other candidates."""
    from bgt_core.neighbours import bitext

    bitext.check(k, margin, index, recall, threshold)
    if (langs is None) == (vectors is None):
        raise UsageError("or --vectors: give one of them.", parameter="langs")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"{out}: name a file in a folder that exists.", parameter="out")
    texts = bitext.read_sentences(left), bitext.read_sentences(right)
    known = bitext.read_gold(gold, *texts) if gold else None
    rows = [bitext.read_vectors(path, text) for path, text in zip(vectors, texts, strict=True)] if vectors else None
    with options.rows_bar(out.name) as report:
        mined = bitext.mine(
            *(rows or texts), encoder=None if rows else options.open_encoder(model, device), langs=langs, k=k,
            margin=margin, threshold=threshold, index=index, recall=recall, report=report,
        )  # fmt: skip
    bitext.write_pairs(out, mined.pairs, *texts)
    sizes = " x ".join(f"{size:,}" for size in mined.sizes)
    print(f"{out}: {len(mined.pairs.scores):,} pairs of {sizes} different sentences; {mined.plan}", file=sys.stderr)
    if known:
        from bgt_core.tables import show

        table = []
        for kept in mined.against(*known):
            name, digits = ("--threshold", "g") if kept.rule == "threshold" else (kept.rule, ".3f")
            values = " ".join(format(value, digits) for value in kept.thresholds)
            shares = (f"{100 * share:.1f}" for share in (kept.precision, kept.recall, kept.f1))
            table.append([name, values, str(kept.kept), *shares])
        show(["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"], table)
