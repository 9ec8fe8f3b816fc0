"""What was predicted of each item: the sentences a latent helps with, and two predictors on the same sentences."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pyarrow import compute

from probes.result import Difference
from probes.results.compare import gap


def predictors(table: pa.Table) -> list[str]:
    """The latents and baselines that predictions were kept of; rows as `probes.results.store` has them."""
    return table["predictor"].unique().to_pylist()


def by_information(table: pa.Table, predictor: str) -> pd.DataFrame:
    """A row a tested sentence, those first that the predictor knows most about: pointwise V-information in bits.

    Below zero it does worse than the shares of the labels do (Ethayarajh et al. 2022). What was predicted is that of
    the first probe that tested the sentence.
    """
    own = table.filter(compute.equal(table["predictor"], predictor))
    found = own.select(["item", "sentence", "label", "predicted", "pvi"]).to_pandas()
    found = found.drop_duplicates("item").drop(columns="item")
    return found.sort_values("pvi", ascending=False, kind="stable", ignore_index=True)


def difference(place: tuple[str, str, str, str], table: pa.Table, first: str, second: str) -> Difference:
    """The first predictor minus the second, paired on the same sentences; `place` is model, task, language, probe."""
    _, task, lang, _ = place
    return gap(table, first, table, second, task=task, lang=lang)
