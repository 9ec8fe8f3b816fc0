"""STS systems side by side: an interval on every score, and which differences are more than chance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from zlib import crc32

import numpy as np

from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.comparison import check_bootstrap, differences, estimates, marked
from bgt_core.evaluation.sts.score import AGGREGATES, ScoreKey, StsScores, StsSet, explain, scores
from bgt_core.evaluation.sts.table import StsTable

CHUNK = 100  # resamples made at once
MAX_WEIGHTS = 2**20  # of pairs in resamples made at once, to bound memory: fewer resamples of very large sets


def compare(
    systems: Mapping[str, StsScores],
    aggregates: Collection[str] = ("mean",),
    *,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> StsTable:
    """A paired bootstrap of all systems: pairs are drawn again within each data set, the same ones for each system.

    Intervals are percentiles, and say nothing of how sets or models would vary. A set's resamples depend on its name
    and the seed, not on what is scored beside it. Of each score, the best system is marked "best" where Holm's
    correction over the whole table tells it from all others; otherwise it and those it can't be told from are "tied".
    Raises UsageError for impossible settings, DataError where systems' pairs differ.
    """
    check_settings(aggregates, resamples, level)
    sets = next(iter(systems.values())).sets
    systems = aligned(systems, sets)
    values, draws = bootstrap_scores(list(systems.values()), aggregates, resamples=resamples, seed=seed)
    cells = {key: estimates(value, draws[key], level) for key, value in values.items()}

    names = list(systems)
    gaps = differences(names, values, draws, level)
    about = f"{explain(sets, aggregates)}; {100 * level:g}% intervals from {resamples} resamples of each set's pairs"
    return StsTable(
        systems=names,
        scores=marked(names, cells, gaps, level),
        differences=gaps,
        level=level,
        resamples=resamples,
        seed=seed,
        about=about + ("; differences: paired bootstrap, Holm over the table" if gaps else ""),
        pairs=systems,
    )


def bootstrap_scores(
    systems: Sequence[StsScores], aggregates: Collection[str] = ("mean",), *, resamples: int, seed: int
) -> tuple[dict[ScoreKey, np.ndarray], dict[ScoreKey, np.ndarray]]:
    """Scores x 100 of S systems on the same sets, (S,), and in each of B resamples of each set's pairs, (B, S)."""
    sets = systems[0].sets
    cosines = [np.stack(parts) for parts in zip(*(system.cosines for system in systems), strict=True)]
    values = scores(sets, cosines, [np.ones((1, len(data.gold))) for data in sets], aggregates)
    streams = [np.random.default_rng([seed, crc32(str(data).encode())]) for data in sets]
    parts, chunk = [], max(1, min(CHUNK, MAX_WEIGHTS // max(len(data.gold) for data in sets)))
    for start in range(0, resamples, chunk):
        count = min(chunk, resamples - start)
        weights = [resample(stream, len(data.gold), count) for stream, data in zip(streams, sets, strict=True)]
        parts.append(scores(sets, cosines, weights, aggregates))
    draws = {key: np.concatenate([part[key] for part in parts]) for key in values}
    return {key: value[0] for key, value in values.items()}, draws


def check_settings(aggregates: Collection[str], resamples: int, level: float) -> None:
    """UsageError where `compare` can't do with them; for asking before anything is embedded."""
    if unknown := [name for name in aggregates if name not in AGGREGATES]:
        raise UsageError(f"There is no aggregation '{unknown[0]}'; choose from {', '.join(AGGREGATES)}.")
    check_bootstrap(resamples, level)


def aligned(systems: Mapping[str, StsScores], sets: Sequence[StsSet]) -> dict[str, StsScores]:
    """Each system's scores on these sets alone; DataError where it has none of a set, or of other pairs."""
    on_sets = {}
    for name, system in systems.items():
        numbers = {str(data): number for number, data in enumerate(system.sets)}
        for data in sets:
            if str(data) not in numbers:
                raise DataError(f"'{name}' has no scores of {data}; it has {', '.join(numbers)}.")
            if not same_pairs(data, system.sets[numbers[str(data)]]):
                raise DataError(f"{data}: '{name}' was scored on other pairs, or in another order.")
        on_sets[name] = StsScores(sets, [system.cosines[numbers[str(data)]] for data in sets])
    return on_sets


def same_pairs(left: StsSet, right: StsSet) -> bool:
    """Whether row by row the sentences and the gold scores are the same."""
    same_text = list(left.left) == list(right.left) and list(left.right) == list(right.right)
    return same_text and np.array_equal(left.gold, right.gold)
