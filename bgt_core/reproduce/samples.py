"""Finished cells -> every measure of every system, in every resample of what it was measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.sts.compare import bootstrap_scores
from bgt_core.evaluation.sts.parquet import read_scores
from bgt_core.evaluation.sts.score import ScoreKey, StsScores
from bgt_core.reproduce import runner
from bgt_core.reproduce.cells import Cell
from bgt_core.reproduce.contrasts import Sample
from bgt_core.reproduce.experiments import AVERAGE, DEV, RETRIEVAL, Table
from bgt_core.reproduce.measure import read_hits

Samples = Mapping[str, Mapping[str, Sample]]  # system -> measure -> sample


@dataclass(frozen=True)
class Bootstrap:
    """How sure numbers are found out."""

    resamples: int = 2_000
    level: float = 0.95
    seed: int = 0


def sampled(place: runner.Place, table: Table, there: Mapping[str, Sequence[Cell]], how: Bootstrap) -> Samples:
    """Every measure of every system in every resample. Those of the same sets are drawn together, to save time; each
    set's resamples follow from its name, so all are paired."""
    scores: dict[tuple[str, str], StsScores] = {}  # by cell and latent
    hits: dict[str, dict[str, np.ndarray]] = {}
    for system in table.systems:
        for cell in there.get(system.name, ()):
            kept = read_scores(place.folder(cell) / runner.COSINES)
            if system.latent not in kept:
                raise DataError(f"{system.name}: {cell.name} has no {system.latent} latent; it has {', '.join(kept)}.")
            scores[cell.key, system.latent] = kept[system.latent]
            hits[cell.key] = read_hits(place.folder(cell) / runner.HITS)
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for which, of in scores.items():
        groups.setdefault(tuple(map(str, of.sets)), []).append(which)
    found: dict[tuple[str, str], dict[str, tuple[float, np.ndarray]]] = {}
    for members in groups.values():
        values, draws = bootstrap_scores([scores[which] for which in members], resamples=how.resamples, seed=how.seed)
        for column, which in enumerate(members):
            found[which] = {
                name: (float(values[row][column]), draws[row][:, column]) for row in values if (name := measure_of(row))
            }
    for system in table.systems:
        for cell in there.get(system.name, ()):
            if hits[cell.key] and system.latent == SEMANTIC:
                found[cell.key, system.latent][RETRIEVAL] = retrieved(hits[cell.key], how)
    samples = {}
    for system in table.systems:
        of = [found[cell.key, system.latent] for cell in there.get(system.name, ())]
        if of:
            samples[system.name] = {
                name: Sample(np.array([one[name][0] for one in of]), np.stack([one[name][1] for one in of]))
                for name in of[0]
            }
    return samples


def measure_of(row: ScoreKey) -> str | None:
    """What a score is called in our tables; None for a year's own data sets."""
    if row.dataset == "average":
        return AVERAGE
    if row.year.isdigit():
        return f"STS {row.year}" if row.dataset == "all" else None
    if row.year == "hard":
        return "Hard STS, all" if row.dataset == "all" else row.dataset
    return DEV if row.year == "stsb" else f"{row.year.upper()} {row.dataset}"


def retrieved(hits: Mapping[str, np.ndarray], how: Bootstrap) -> tuple[float, np.ndarray]:
    """Precision at 1 x 100, the mean of both ways and all files, and in each resample of the translations."""
    found = []
    for name, ways in hits.items():
        stream = np.random.default_rng([how.seed, crc32(name.encode())])
        weights = resample(stream, ways.shape[1], how.resamples)  # (B, N)
        found.append((100 * ways.mean(), 100 * weights @ ways.mean(0) / ways.shape[1]))
    return float(np.mean([value for value, _ in found])), np.mean([draws for _, draws in found], axis=0)
