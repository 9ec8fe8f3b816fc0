"""What was predicted of each item: the sentences a latent helps with, and two predictors on the same sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute
from scipy.special import bdtr

from probes.result import Difference
from probes.results.compare import gap
from probes.results.store import correctness


class Key(NamedTuple):
    """Which predictions: nothing with another key is ever replaced by them."""

    model: str
    task: str
    lang: str
    probe: str
    live: bool  # computed while somebody waited
    content: str  # a hash


def predictors(table: pa.Table) -> list[str]:
    """The latents and baselines whose predictions were kept; rows as in `probes.results.store`."""
    return table["predictor"].unique().to_pylist()


def by_information(table: pa.Table, predictor: str) -> pd.DataFrame:
    """One row per tested sentence, those first that the predictor knows most about: pointwise V-information in bits.

    Below zero it does worse than the label frequencies alone (Ethayarajh et al. 2022). The predicted label is that of
    the first probe that tested the sentence.
    """
    own = table.filter(compute.equal(table["predictor"], predictor))
    rows = own.select(["item", "sentence", "label", "predicted", "pvi"]).to_pandas()
    rows = rows.drop_duplicates("item").drop(columns="item")
    return rows.sort_values("pvi", ascending=False, kind="stable", ignore_index=True)


def difference(key: Key, table: pa.Table, first: str, second: str) -> Difference:
    """The first predictor minus the second, paired on the same sentences."""
    return gap(table, first, table, second, task=key.task, lang=key.lang)


@dataclass(frozen=True)
class PairedDifference:
    """One predictor against another on the same items."""

    points: float  # accuracy of the first minus that of the second, 0 to 100
    ci_low: float  # bootstrap over items and seeds, 95%
    ci_high: float
    p: float  # of the same standard error as the interval
    first_only: int  # items that only the first gets right, each judged once, by the first probe that tested it
    second_only: int
    mcnemar_p: float  # exact and two-sided: do the two fail on different items by more than chance?
    items: int


def paired(
    first: pa.Table, first_predictor: str, second: pa.Table, second_predictor: str, *, task: str, lang: str
) -> PairedDifference:
    """Two predictors, of one model or of two, on the same task and items; DataError where the items differ.

    Tables as in `probes.results.store`, such as `Cell.predictions` of two models probed on one dataset.
    """
    difference = gap(first, first_predictor, second, second_predictor, task=task, lang=lang)
    one, two = correctness(first, first_predictor), correctness(second, second_predictor)
    rows = np.arange(one.tested.shape[1])
    seeds = one.tested.argmax(axis=0)
    right, other_right = one.right[0, seeds, rows], two.right[0, seeds, rows]
    first_only, second_only = int((right & ~other_right).sum()), int((other_right & ~right).sum())
    mcnemar_p = min(1.0, 2 * float(bdtr(min(first_only, second_only), first_only + second_only, 0.5)))
    return PairedDifference(
        difference.points,
        difference.ci_low,
        difference.ci_high,
        difference.p,
        first_only,
        second_only,
        mcnemar_p,
        len(rows),
    )
