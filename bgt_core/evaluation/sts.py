"""Semantic textual similarity, aggregated as in the paper.

Files: ROOT/YEAR/DATASET.tsv, lines "gold <tab> sentence <tab> sentence", gold from 0 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import pearsonr

from bgt_core.contracts import BadInput, Embeds
from bgt_core.vectors import cosines


@dataclass(frozen=True)
class StsSet:
    """One dataset: N sentence pairs and their gold similarity."""

    year: str
    name: str
    gold: np.ndarray  # (N,) float64, 0-5
    left: list[str]
    right: list[str]


@dataclass(frozen=True)
class StsScores:
    """Pearson x 100 of each dataset, and the paper's averages of them."""

    datasets: dict[tuple[str, str], float]  # (year, dataset) -> score

    @property
    def years(self) -> dict[str, float]:
        """The unweighted mean over each year's datasets."""
        names = sorted({year for year, _ in self.datasets})
        return {name: float(np.mean([s for (year, _), s in self.datasets.items() if year == name])) for name in names}

    @property
    def average(self) -> float:
        """The mean over years."""
        return float(np.mean(list(self.years.values())))


def aggregation(sets: Sequence[StsSet]) -> str:
    """What `StsScores.average` is, in words; published scores differ by whether 2013 has its SMT set."""
    names = {(data.year, data.name.upper()) for data in sets}
    smt = f"; 2013 {'with' if ('2013', 'SMT') in names else 'without'} SMT" if "2013" in dict(names) else ""
    return f"mean over years of the unweighted mean of per-dataset Pearson x 100 of cosines{smt}"


def read_sts(root: Path, years: Sequence[str]) -> list[StsSet]:
    """The datasets of these years; BadInput for a missing year or a bad line, by file and number."""
    sets = []
    for year in years:
        files = sorted((root / year).glob("*.tsv"))
        if not files:
            raise BadInput(
                f"{root / year}: no STS files; expected {year}/DATASET.tsv with gold, sentence, sentence.", 3
            )
        sets += [read_set(path, year) for path in files]
    return sets


def read_set(path: Path, year: str) -> StsSet:
    """One file of gold <tab> sentence <tab> sentence; further columns are left alone."""
    gold, left, right = [], [], []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            score, one, two = line.decode("utf-8").split("\t")[:3]
            if not math.isfinite(value := float(score)):
                raise ValueError(value)
        except ValueError:  # too few columns, bytes that are not UTF-8, gold that is no number
            found = repr(line[:60].decode("utf-8", "replace"))
            raise BadInput(
                f"{path}:{number}: expected gold <tab> sentence <tab> sentence in UTF-8, found {found}."
            ) from None
        gold.append(value)
        left.append(one)
        right.append(two)
    if len(gold) < 2:
        raise BadInput(f"{path}: {len(gold)} pairs; a correlation needs at least 2.")
    if len(set(gold)) == 1:
        raise BadInput(f"{path}: every gold score is {gold[0]}; a correlation needs different ones.")
    return StsSet(year, path.stem, np.array(gold), left, right)


def score_set(bgt: Embeds, data: StsSet, *, lang: str, latent: str) -> float:
    """Pearson x 100 between gold and cosine; 0 where all cosines are equal."""
    left = bgt.embed(data.left, lang=lang, latent=latent)
    right = bgt.embed(data.right, lang=lang, latent=latent)
    cosine = cosines(left, right)
    if np.ptp(cosine) < 1e-6:
        return 0.0
    return 100 * float(pearsonr(cosine, data.gold).statistic)


def sts(bgt: Embeds, sets: Sequence[StsSet], *, lang: str = "en", latent: str = "semantic") -> StsScores:
    """Score an embedder on these datasets."""
    return StsScores({(data.year, data.name): score_set(bgt, data, lang=lang, latent=latent) for data in sets})
