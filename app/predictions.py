"""What was predicted of each item: the sentences a latent helps with, and two predictors on the same sentences."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import pyarrow as pa
from pyarrow import compute

from probes.result import Difference
from probes.results.compare import gap


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
