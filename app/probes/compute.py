"""Train a probe from the app, and compare predictions sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
from pyarrow import compute

import probes
from app.core import startup
from app.core.corpora import sentences
from app.core.results.gather import Key
from app.core.startup import ParallelText
from app.core.state import Loaded
from bgt_core.errors import BgtError
from probes.data.load import GRAMMAR, Dataset, grammar_sentences, label_sentences, load_items
from probes.result import Difference
from probes.results.tables import gap
from probes.task import ProbeTask
from probes.tasks import TASKS

LABELLED = ("conllu", "mrg", "ptb", "trees", "txt", "tsv")  # endings of files that tasks can be labelled from


def by_information(table: pa.Table, predictor: str) -> pd.DataFrame:
    """One row per tested sentence, sorted by pointwise V-information in bits, the highest first.

    Below zero the predictor does worse than the label frequencies alone (Ethayarajh et al. 2022). The predicted label
    is that of the first probe that tested the sentence.
    """
    own = table.filter(compute.equal(table["predictor"], predictor))
    rows = own.select(["item", "sentence", "label", "predicted", "pvi"]).to_pandas()
    rows = rows.drop_duplicates("item").drop(columns="item")
    return rows.sort_values("pvi", ascending=False, kind="stable", ignore_index=True)


def difference(key: Key, table: pa.Table, first: str, second: str) -> Difference:
    """The first predictor minus the second, paired on the same sentences."""
    return gap(table, first, table, second, task=key.task, lang=key.lang)


class LabelledFile(NamedTuple):
    """An uploaded file of parses, trees or labelled sentences."""

    name: str
    content: bytes


def run(
    loaded: Loaded,
    task: str,
    lang: str,
    text: ParallelText | LabelledFile | None,
    source: str,
    items: int,
    seeds: int,
    report: Callable[[str], None],
) -> probes.Cell:
    """Train and test a probe as `bgt-probe` does, on its default data if no text is given.

    `source` names the text. `report` is called with each step; an exception that it raises ends the work.
    """
    config = probes.ProbeConfig(max_items=items, seeds=seeds)
    dataset = None
    if isinstance(text, LabelledFile):
        dataset = load_file(TASKS[task], lang, text)
    elif text == startup.GRAMMAR:
        dataset = label_sentences(TASKS[task], grammar_sentences(lang), lang, source=GRAMMAR)
    elif text:
        table = sentences(text, items)
        lines = table.loc[table["lang"] == lang, "text"].tolist()
        dataset = label_sentences(TASKS[task], lines, lang, source=source)
    return probes.measure_cell(
        loaded.encoder, task, dataset, lang=lang, name=loaded.title, config=config, report=report
    )


def load_file(task: ProbeTask, lang: str, file: LabelledFile) -> Dataset:
    """The items of a task from an uploaded file; BgtError as `load_items`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.content)
        try:
            dataset = load_items(task, lang, path)
        except BgtError as error:  # show the user's name of the file
            raise type(error)(str(error).replace(str(path), file.name)) from None
    return replace(dataset, about={**dataset.about, "data": file.name})
