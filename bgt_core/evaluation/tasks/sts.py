"""Semantic textual similarity: the correlation of an encoder's similarities with human scores.

files of STS -> sets of pairs -> similarity of each pair -> correlation by set, by year and over years
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated
from zlib import crc32

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.languages import known_lang
from bgt_core.errors import DataError, UsageError, check_choice
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.result import Result
from bgt_core.evaluation.sts.files import dataset_warnings, read_scores, read_sets, write_scores
from bgt_core.evaluation.sts.score import (
    AGGREGATES,
    ScoreKey,
    StsScores,
    StsSet,
    explain,
    hard_splits,
    note,
    scores,
    span,
)
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Latent, Task, one_path

YEARS = "2012-2016"


@dataclass(frozen=True)
class Sts(Task[Sequence[StsSet]]):
    """Semantic textual similarity: do similarities agree with human judgements?

    The score of a year is the mean Pearson correlation of its data sets, as in the paper; --aggregate has the other
    conventions. Pairs are resampled within each set. --out writes the gold score and the
    similarity of every pair to items.parquet; as DATA it provides the sets.
    """

    data = (
        "A folder of STS files as SemEval or SentEval gives them, or YEAR/NAME.tsv; or FILE.parquet that --out wrote."
    )

    sets: Annotated[
        str, "Years and benchmarks, with commas: 2012-2016, 2014, stsb-dev, stsb-dev-fr, sick, sts17, sts17-en-es."
    ] = YEARS
    lang: Annotated[str, "Language of the years, if they are translated."] = "en"
    latent: Latent = None
    aggregate: Annotated[
        str, "How to average the data sets of a year: mean (the paper's), weighted, concatenated, all."
    ] = "mean"
    stsb_without: Annotated[str | None, "Leave the pairs of these years out of stsb, as 2016,2017."] = None
    hard: Annotated[bool, "Also measure Hard STS: pairs of the years with a misleading overlap of words."] = False
    strict: Annotated[bool, "Stop on a warning about the data sets."] = False

    def load(self, paths: Sequence[Path], *, seed: int) -> list[StsSet]:
        """Read the sets; a file of stored similarities provides all its sets."""
        aggregates(self.aggregate)
        path = one_path(paths, "a folder of STS files")
        if path.suffix == ".parquet":
            return list(next(iter(read_scores(path).values())).sets)
        known_lang(self.lang, (), "")
        without = self.stsb_without.split(",") if self.stsb_without else ()
        return read_sets(path, parse_sets(self.sets), lang=self.lang, without=without)

    def statistic(self, items: Sequence[StsSet], encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Correlate; the resamples of a set depend only on its name and the seed."""
        sets, warnings = list(items), dataset_warnings(items)
        if warnings and self.strict:
            raise DataError(" ".join(warnings))
        if self.hard:
            splits = hard_splits([data for data in sets if data.year.isdigit()])
            sets, warnings = [*sets, *splits], [*warnings, note(splits)]
        across = any(data.left_lang != data.right_lang for data in sets)
        langs = dict.fromkeys(lang for data in sets for _, _, lang in data.sides)
        rows = systems(encoders, langs, self.latent, across=across)
        by_system = {system.name: score_sets(system, sets) for system in rows}
        kinds = aggregates(self.aggregate)
        return Statistic(
            systems=list(by_system),
            scores=partial(correlations, sets, [each.cosines for each in by_system.values()], kinds),
            samples=samples(sets),
            about=explain(sets, kinds),
            warnings=warnings,
            write_items=partial(write_scores, systems=by_system),
        )


TASK = Sts


def aggregates(name: str) -> list[str]:
    """The aggregations of that name, which may be "all"."""
    check_choice([*AGGREGATES, "all"], aggregate=name)
    return list(AGGREGATES) if name == "all" else [name]


def parse_sets(text: str) -> list[str]:
    """ "2012-2014,sick" -> ["2012", "2013", "2014", "sick"]."""
    names: list[str] = []
    for part in text.split(","):
        years = re.fullmatch(r"(\d{4})-(\d{4})", part)
        if years and years[1] > years[2]:
            raise UsageError(f"{part}: years go from the first to the last, as in 2012-2016.", parameter="sets")
        names += [str(year) for year in range(int(years[1]), int(years[2]) + 1)] if years else [part]
    return names


def average(result: Result, system: str | None = None) -> float:
    """A system's mean over SemEval years, by default that of the only system; UsageError without years."""
    years = span([key.year for key in result.scores if key.dataset == "all"])
    return result.value((years, "average", "mean Pearson"), system)


def score_sets(system: System, sets: Sequence[StsSet]) -> StsScores:
    """Compare every pair of these sets; errors name the set."""
    cosines = []
    for data in sets:
        try:
            cosines.append(system.similarities(data.left, data.right, data.left_lang, data.right_lang))
        except DataError as error:
            raise DataError(f"{data}: {error}") from None
    return StsScores(sets, cosines)


def samples(sets: Sequence[StsSet]) -> list[ItemSample]:
    """A sample of pairs for each set, seeded by its name."""
    return [ItemSample(len(data.gold), (crc32(str(data).encode()),)) for data in sets]


def correlations(
    sets: Sequence[StsSet],
    cosines: Sequence[Sequence[np.ndarray]],
    kinds: Sequence[str],
    weights: Sequence[np.ndarray],
) -> dict[ScoreKey, np.ndarray]:
    """Scores of S systems, (B, S), from the similarities of each system in each set, and resamples of each set."""
    return scores(sets, [np.stack(parts) for parts in zip(*cosines, strict=True)], weights, kinds)
