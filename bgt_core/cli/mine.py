"""`bgt mine`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bgt_core import PRETRAINED
from bgt_core.cli.options import DeviceOption, EncoderOption, open_encoder
from bgt_core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from bgt_core.mining.margin import Pairs


def mine(
    left: Annotated[Path, typer.Argument(metavar="A", help="One sentence a line (.gz, .xz, .zst too).")],
    right: Annotated[Path, typer.Argument(metavar="B", help="The same, in another language.")],
    out: Annotated[Path, typer.Option(help="A TSV: score, line of A, line of B, both sentences; best first.")],
    langs: Annotated[str | None, typer.Option(help="The languages of A and B, as in en,fr.")] = None,
    vectors: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.npy B.npy", help="Instead of --langs: vectors that `bgt embed` made of A and B."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Neighbours that a score is relative to.")] = 4,
    margin: Annotated[str, typer.Option(help="ratio, distance or absolute (the plain cosine).")] = "ratio",
    retrieval: Annotated[
        str, typer.Option(help="max (uses each sentence once), intersection, forward or backward.")
    ] = "max",
    threshold: Annotated[float, typer.Option(help="The lowest score to keep.", show_default="all kept")] = -math.inf,
    index: Annotated[str, typer.Option(help="exact or approximate; the latter for 100,000 lines and more.")] = "exact",
    recall: Annotated[float, typer.Option(help="Share of nearest neighbours for approximate search to reach.")] = 0.95,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="After approximate search, make the scores of kept pairs exact.")
    ] = False,
    gold: Annotated[
        Path | None, typer.Option(help="Known translations, line of A <tab> line of B: prints how many are found.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, show_default="all cores")] = None,
    model: EncoderOption = str(PRETRAINED),
    device: DeviceOption = "auto",
) -> None:
    """Find translations in two texts, by how far their cosine stands out among those of other candidates."""
    from bgt_core.cli.progress import rows_bar
    from bgt_core.mining import files, neighbours
    from bgt_core.mining.margin import check
    from bgt_core.mining.margin import mine as mine_pairs
    from bgt_core.mining.margin import rescore as rescored

    check(k, margin, retrieval)
    plan = neighbours.planner(index, recall)
    if (langs is None) == (vectors is None):
        raise UsageError("Give --langs to embed A and B, or --vectors where that is done.")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"--out {out}: name a file in a folder that exists.")
    texts = files.read_sentences(left), files.read_sentences(right)
    known = files.read_gold(gold, *texts) if gold else None
    use_threads(threads)
    if vectors:
        sides = [files.read_vectors(path, text) for path, text in zip(vectors, texts, strict=True)]
    else:
        sides = files.embed(open_encoder(model, device), texts, langs.split(","))
    compared = plan(*sides)
    with rows_bar(out.name) as report:
        pairs = mine_pairs(*sides, compared, k=k, margin=margin, retrieval=retrieval, report=report)
        if rescore:
            pairs = rescored(pairs.take(pairs.scores >= threshold), *sides, k=k, margin=margin, report=report)
    kept = pairs.take(pairs.scores >= threshold)
    files.write_pairs(out, kept, *texts)
    of = " x ".join(f"{len(side):,}" for side in sides)
    print(f"{out}: {len(kept.scores):,} pairs of {of} different sentences; {compared}", file=sys.stderr)
    if known:
        show_found(pairs, known, threshold)


def use_threads(count: int | None) -> None:
    """That many for torch and FAISS, which count their threads apart; all cores for None."""
    import faiss
    import torch

    if count:
        torch.set_num_threads(count)
        faiss.omp_set_num_threads(count)


def show_found(pairs: Pairs, known: tuple[np.ndarray, np.ndarray], threshold: float) -> None:
    """A table of precision, recall and F1: of all mined pairs and at thresholds."""
    from bgt_core.mining import scores
    from bgt_core.tables import show

    correct, count = scores.among(pairs.left, pairs.right, *known), len(known[0])
    odd = known[0] % 2
    best = scores.best_threshold(pairs.scores, correct, count)
    apart, used = scores.held_out(pairs.scores, correct, pairs.left % 2, (count - odd.sum(), odd.sum()))
    rows = [("all", "", scores.count(pairs.scores, correct, count))]
    if threshold > -math.inf:
        rows.append(("--threshold", f"{threshold:g}", scores.count(pairs.scores, correct, count, threshold)))
    rows.append(("best threshold", f"{best:.3f}", scores.count(pairs.scores, correct, count, best)))
    rows.append(("best of the other half", " ".join(f"{value:.3f}" for value in used), apart))
    show(
        ["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"],
        [
            [name, value, str(found.kept), *(f"{100 * x:.1f}" for x in (found.precision, found.recall, found.f1))]
            for name, value, found in rows
        ],
    )
