"""Measures that are ratios of two sums; both counts of every item are stored, so that items can be resampled.

A share is the sum of one count over the sum of another, as right answers over answers, or edits over nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, share
from bgt_core.files import write_text

Shares = Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]]  # latent -> measure -> both counts, (N,) each


def write_shares(path: Path, shares: Shares) -> None:
    """As JSON, atomically: {latent: {measure: [[3, 0, ...], [4, 2, ...]]}}."""
    counts = {
        latent: {measure: [np.asarray(side).astype(int).tolist() for side in sides] for measure, sides in of.items()}
        for latent, of in shares.items()
    }
    write_text(path, json.dumps(counts))


def read_shares(path: Path) -> Shares:
    """Empty where a training was finished before these were kept."""
    counts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        latent: {measure: (np.array(part), np.array(whole)) for measure, (part, whole) in of.items()}
        for latent, of in counts.items()
    }


def share_draws(
    shares: Mapping[str, tuple[np.ndarray, np.ndarray]], resamples: int, seed: int
) -> dict[str, tuple[float, np.ndarray]]:
    """Each measure x 100, and in each of B resamples of its items, (B,): the same items for all trainings."""
    if not shares:
        return {}
    values, draws = bootstrap(
        lambda weights: {
            measure: share(drawn, part, whole)
            for drawn, (measure, (part, whole)) in zip(weights, shares.items(), strict=True)
        },
        [ItemSample(len(part), (1,)) for part, _ in shares.values()],
        resamples=resamples,
        seed=seed,
    )
    return {measure: (float(value), draws[measure]) for measure, value in values.items()}
