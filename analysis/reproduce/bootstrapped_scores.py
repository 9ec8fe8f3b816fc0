"""Finished trainings -> every measure of every system, in every resample of what it was measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np

from analysis.reproduce import runner
from analysis.reproduce.experiments import AVERAGE, DEV, GAPS, RETRIEVAL, SETS, Comparison
from analysis.reproduce.measure import read_hits
from analysis.reproduce.pair_scores import pair_draws, read_pair_scores
from analysis.reproduce.rewriting import fidelity_draws, read_records
from analysis.reproduce.shares import read_shares, share_draws
from analysis.reproduce.trainings import Training
from bgt_core.contracts import SEMANTIC, SYNTACTIC
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import BootstrappedScore, ItemSample
from bgt_core.evaluation.bootstrap import bootstrap as resample
from bgt_core.evaluation.comparison import check_bootstrap
from bgt_core.evaluation.sts_files import StsScores, read_scores
from bgt_core.evaluation.tasks.sts import ScoreKey, correlations, samples

Scores = Mapping[str, Mapping[str, BootstrappedScore]]  # system -> measure -> score
Draws = tuple[float, np.ndarray]  # a score, and in each of B resamples, (B,)
Measured = tuple[str, str]  # key of a training, and latent


@dataclass(frozen=True)
class Bootstrap:
    """Bootstrap settings. Raises UsageError for fewer than 100 resamples or a level outside [0.5, 1)."""

    resamples: int = 2_000
    level: float = 0.95  # of intervals and verdicts
    seed: int = 0

    def __post_init__(self) -> None:
        check_bootstrap(self.resamples, self.level)


def bootstrapped_scores(
    workspace: runner.Workspace,
    comparison: Comparison,
    finished: Mapping[str, Sequence[Training]],
    bootstrap: Bootstrap,
) -> Scores:
    """Every measure of every system with finished trainings, in every resample.

    Raises DataError where a training lacks the latent that its system is measured in.
    """
    sts = load_sts(workspace, comparison, finished)
    draws = bootstrap_sts(sts, bootstrap)
    folders = {training.key: workspace.folder(training) for of in finished.values() for training in of}
    for key, ways in load_hits(workspace, comparison, finished).items():
        if ways and (key, SEMANTIC) in draws:
            draws[key, SEMANTIC][RETRIEVAL] = precision_at_1(ways, bootstrap)
    for (key, latent), by_name in draws.items():
        shares = read_shares(folders[key] / runner.SHARES).get(latent, {})
        by_name.update(share_draws(shares, bootstrap.resamples, bootstrap.seed))
        if latent == SEMANTIC:
            pairs = read_pair_scores(folders[key] / runner.PAIRS)
            by_name.update(pair_draws(pairs, bootstrap.resamples, bootstrap.seed))
            records = read_records(folders[key] / runner.WRITTEN)
            by_name.update(fidelity_draws(records, bootstrap.resamples, bootstrap.seed))
    for (key, latent), by_name in draws.items():
        if latent == SEMANTIC:
            by_name.update(gaps(by_name, draws.get((key, SYNTACTIC), {})))
    scores = {}
    for system in comparison.systems:
        by_seed = [draws[training.key, system.latent] for training in finished.get(system.name, ())]
        if by_seed:
            names = [name for name in by_seed[0] if all(name in by_name for by_name in by_seed)]
            if comparison.measure != SETS:
                names = [name for name in names if name != SETS]
            scores[system.name] = {name: stack([by_name[name] for by_name in by_seed]) for name in names}
    return scores


def gaps(semantic: Mapping[str, Draws], syntactic: Mapping[str, Draws]) -> dict[str, Draws]:
    """The lead of the latent that should be better, in each measure that both latents of a training have."""
    apart = {}
    for name, (measure, sign) in GAPS.items():
        if measure in semantic and measure in syntactic:
            (value, draws), (other, other_draws) = semantic[measure], syntactic[measure]
            apart[name] = sign * (value - other), sign * (draws - other_draws)
    return apart


def stack(by_seed: Sequence[Draws]) -> BootstrappedScore:
    """One measure of K trainings of a system."""
    return BootstrappedScore(np.array([value for value, _ in by_seed]), np.stack([draws for _, draws in by_seed]))


def load_sts(
    workspace: runner.Workspace, comparison: Comparison, finished: Mapping[str, Sequence[Training]]
) -> dict[Measured, StsScores]:
    """The cosines of each training in the latent of its system."""
    scores: dict[Measured, StsScores] = {}
    for system in comparison.systems:
        for training in finished.get(system.name, ()):
            path = workspace.folder(training) / runner.COSINES
            if not path.exists():  # its data have no STS
                scores[training.key, system.latent] = StsScores([], [])
                continue
            by_latent = read_scores(path)
            if system.latent not in by_latent:
                latents = ", ".join(by_latent)
                raise DataError(f"{system.name}: {training.name} has no {system.latent} latent; it has {latents}.")
            scores[training.key, system.latent] = by_latent[system.latent]
    return scores


def load_hits(
    workspace: runner.Workspace, comparison: Comparison, finished: Mapping[str, Sequence[Training]]
) -> dict[str, dict[str, np.ndarray]]:
    """The retrieved translations of each training of a system measured in the semantic latent, by its key."""
    return {
        training.key: read_hits(workspace.folder(training) / runner.HITS)
        for system in comparison.systems
        if system.latent == SEMANTIC
        for training in finished.get(system.name, ())
    }


def bootstrap_sts(scores: Mapping[Measured, StsScores], bootstrap: Bootstrap) -> dict[Measured, dict[str, Draws]]:
    """Each measure in each resample. Trainings measured on the same sets are resampled together, to save time; a set's
    resamples follow from its name, so that all trainings are paired."""
    groups: dict[tuple[str, ...], list[Measured]] = {}
    for measured, sts in scores.items():
        groups.setdefault(tuple(map(str, sts.sets)), []).append(measured)
    by_measure: dict[Measured, dict[str, Draws]] = {}
    by_measure.update((measured, {}) for measured in groups.pop((), []))
    for members in groups.values():
        sets = scores[members[0]].sets
        of_members = partial(correlations, sets, [scores[measured].cosines for measured in members], ["mean"])
        values, draws = resample(of_members, samples(sets), resamples=bootstrap.resamples, seed=bootstrap.seed)
        for column, measured in enumerate(members):
            by_measure[measured] = {
                name: (float(values[row][column]), draws[row][:, column]) for row in values if (name := measure_of(row))
            }
            each = [row for row in values if (row.year.isdigit() or row.year == "sick") and row.score == "Pearson"]
            mean = float(np.mean([values[row][column] for row in each]))
            by_measure[measured][SETS] = mean, np.mean([draws[row][:, column] for row in each], axis=0)
    return by_measure


def measure_of(row: ScoreKey) -> str | None:
    """The name of a score in our comparisons; None for a year's own data sets."""
    if row.dataset == "average":
        return AVERAGE
    if row.year.isdigit():
        return f"STS {row.year}" if row.dataset == "all" else None
    if row.year == "hard":
        return "Hard STS, all" if row.dataset == "all" else row.dataset
    return DEV if row.year == "stsb" else f"{row.year.upper()} {row.dataset}"


def precision_at_1(hits: Mapping[str, np.ndarray], bootstrap: Bootstrap) -> Draws:
    """Precision at 1 x 100, the mean of both directions and all files, and in each resample of the translations."""
    _, draws = resample(
        lambda weights: {
            name: 100 * of_file @ ways.mean(0) / ways.shape[1]
            for of_file, (name, ways) in zip(weights, hits.items(), strict=True)
        },
        [ItemSample(ways.shape[1], (crc32(name.encode()),)) for name, ways in hits.items()],
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
    )
    return float(np.mean([100 * ways.mean() for ways in hits.values()])), np.mean(list(draws.values()), axis=0)
