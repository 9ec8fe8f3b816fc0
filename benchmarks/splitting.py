"""Splitting an encoder's vectors: `bgt_core.split` by `bgt` against canonical correlations by numpy alone.

Equal: the stored vectors of 40,000 pairs, made from planted factors, and, to the error stated, the correlations. The
peer is the textbook's: QR of either side's centred vectors, then the singular values of the product of both Qs. Ours
reads a batch at a time, and does more: it chooses shrinkage and the number of factors on held-out rows, scores them
before and after, and makes the maps of both parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median

import numpy as np
import torch

import bgt_core
from benchmarks.measure import Measurement, clock_of, interleave, over, page, product_rate
from bgt_core.splitting import Split
from bgt_core.splitting.gather import gather

ROWS = 40_000
SIZES = {384: 60, 1024: 100}  # units of a vector, and factors that both sides share


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    clock = clock_of(options.threads)
    for width, shared in SIZES.items():
        columns = planted(width, shared)

        def split(_: int, columns: list[np.ndarray] = columns) -> Split:
            return bgt_core.split(None, [(["en", "fr"], columns)])

        def textbook(_: int, columns: list[np.ndarray] = columns) -> np.ndarray:
            sides = [np.linalg.qr(vectors - vectors.mean(0))[0] for vectors in columns]
            return np.linalg.svd(sides[0].T @ sides[1], compute_uv=False)

        ours, theirs = interleave(split, textbook, options.threads, options.rounds)
        summed = []
        for _ in range(options.rounds):
            begun = clock()
            gather(None, [(["en", "fr"], columns)])
            summed.append(clock() - begun)
        nats = np.asarray(split(0).about["nats"])
        peer = -0.5 * np.log1p(-(textbook(0)[: len(nats)] ** 2))
        floor = 2 * ROWS * (2 * width) ** 2 / 2 / product_rate(torch.float32, options.threads)
        yield Measurement(
            work=f"splitting {ROWS:,} pairs of {width} units by bgt",
            against="numpy: QR of both sides, singular values",
            ratios=over(theirs, ours),
            target=">= 1",
            ours=f"{median(ours):.1f} s",
            peer=f"{median(theirs):.1f} s",
            error=f"nats of a factor differ by at most {np.abs(nats - peer).max():.0e}: ours are shrunk",
            floor=f"the sums of products of all units, each once, {floor:.1f} s",
            reached=floor / median(ours),
            bottleneck=f"sums and samples of the rows, {median(summed):.1f} s; the rest is the fit and its scores",
        )


def planted(width: int, shared: int) -> list[np.ndarray]:
    """Vectors of both columns, each (ROWS, width) float32: shared factors of falling size, and noise."""
    draw = np.random.default_rng(0)
    factors = draw.standard_normal((ROWS, shared)) * np.linspace(1.0, 0.1, shared)
    return [
        (factors @ draw.standard_normal((shared, width)) / shared**0.5 + draw.standard_normal((ROWS, width))).astype(
            np.float32
        )
        for _ in range(2)
    ]


if __name__ == "__main__":
    page(rows, __doc__)
