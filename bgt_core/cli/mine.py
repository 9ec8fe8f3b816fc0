"""`bgt mine`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli import options
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    from bgt_core.neighbours.margin import Kept


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
    retrieval: Annotated[
        str, typer.Option(help="max (uses each sentence once), intersection, forward or backward.")
    ] = "max",
    threshold: Annotated[float, typer.Option(help="Minimum score of a pair.", show_default="all kept")] = -math.inf,
    index: Annotated[str, typer.Option(help="exact, or approximate for 100,000 lines or more.")] = "exact",
    recall: Annotated[
        float, typer.Option(help="Share of the nearest neighbours that approximate search must find.")
    ] = 0.95,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="After approximate search, compute exact scores of the kept pairs.")
    ] = False,
    gold: Annotated[
        Path | None, typer.Option(help="Known translations, line of A <tab> line of B: prints how many are found.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")] = None,
    model: options.EncoderOption = str(PRETRAINED),
    device: options.DeviceOption = "auto",
) -> None:
    """Find translations in two texts, by the margin of their cosine over that of other candidates."""
    from bgt_core.neighbours import bitext
    from bgt_core.neighbours.margin import check
    from bgt_core.neighbours.search import load_faiss, planner

    faiss = load_faiss()
    check(k, margin, retrieval)
    planner(index, recall)
    if (langs is None) == (vectors is None):
        raise UsageError("or --vectors: give one of them.", parameter="langs")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"{out}: name a file in a folder that exists.", parameter="out")
    texts = bitext.read_sentences(left), bitext.read_sentences(right)
    known = bitext.read_gold(gold, *texts) if gold else None
    if threads:
        import torch

        torch.set_num_threads(threads)
        faiss.omp_set_num_threads(threads)
    rows = [bitext.read_vectors(path, text) for path, text in zip(vectors, texts, strict=True)] if vectors else None
    with options.rows_bar(out.name) as report:
        mined = bitext.mine(
            *(rows or texts),
            encoder=None if rows else options.open_encoder(model, device),
            langs=langs,
            k=k,
            margin=margin,
            retrieval=retrieval,
            threshold=threshold,
            index=index,
            recall=recall,
            rescored=rescore,
            report=report,
        )
    bitext.write_pairs(out, mined.pairs, *texts)
    sizes = " x ".join(f"{size:,}" for size in mined.sizes)
    print(f"{out}: {len(mined.pairs.scores):,} pairs of {sizes} different sentences; {mined.plan}", file=sys.stderr)
    if known:
        show_kept(mined.against(*known))


def show_kept(kept: Sequence[Kept]) -> None:
    """A table of precision, recall and F1."""
    from bgt_core.tables import show

    rows = []
    for rule, thresholds, counts in kept:
        name, digits = ("--threshold", "g") if rule == "threshold" else (rule, ".3f")
        values = " ".join(format(value, digits) for value in thresholds)
        shares = (f"{100 * share:.1f}" for share in (counts.precision, counts.recall, counts.f1))
        rows.append([name, values, str(counts.kept), *shares])
    show(["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"], rows)
