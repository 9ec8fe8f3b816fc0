"""Train a probe from the app, and compare predictions sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pyarrow as pa
from pyarrow import compute

import probes
from app.core.corpora import sentences
from app.core.startup import ParallelText
from app.core.state import Loaded
from probes.data.load import label_sentences
from probes.tasks import TASKS


def by_information(table: pa.Table, predictor: str) -> pd.DataFrame:
    """Return one row per tested sentence, sorted by pointwise V-information in bits, the highest first.

    Below zero, the predictor is worse than the label frequencies (Ethayarajh et al. 2022). The predicted label is that
    of the first probe that tested the sentence.
    """
    own = table.filter(compute.equal(table["predictor"], predictor))
    rows = own.select(["item", "sentence", "label", "predicted", "pvi"]).to_pandas()
    rows = rows.drop_duplicates("item").drop(columns="item")
    return rows.sort_values("pvi", ascending=False, kind="stable", ignore_index=True)


def run(
    loaded: Loaded,
    task: str,
    lang: str,
    text: ParallelText | None,
    source: str,
    items: int,
    seeds: int,
    report: Callable[[str], None],
) -> probes.Cell:
    """Train and test a probe as `bgt-probe` does; without `text`, on the default data.

    `source` names the text. `report` is called with each step; an exception that it raises ends the work.
    """
    config = probes.ProbeConfig(max_items=items, seeds=seeds)
    dataset = None
    if text:
        table = sentences(text, items)
        dataset = label_sentences(TASKS[task], table.loc[table["lang"] == lang, "text"].tolist(), lang, source=source)
    return probes.measure_cell(loaded, task, dataset, lang=lang, name=loaded.title, config=config, report=report)
