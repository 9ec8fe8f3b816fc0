"""Probes trained while somebody waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import probes
from app import startup
from app.spaces import sentences
from app.startup import ParallelText
from app.state import Loaded
from bgt_core.errors import BgtError
from probes.data.built_in import GRAMMAR, grammar_sentences
from probes.dataset import Dataset, label_sentences, load_items
from probes.task import ProbeTask
from probes.tasks import TASKS

LABELLED = ("conllu", "mrg", "ptb", "trees", "txt", "tsv")  # endings of files that tasks can be labelled from


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
    curve: bool = False,
) -> probes.Cell:
    """What `bgt-probe` measures, on what it takes by default where no text is given; `source` is what a text is called.

    `report` is told each step; what it raises ends the work.
    """
    config = probes.ProbeConfig(max_items=items, seeds=seeds, curve=curve)
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
    """The items of a task from an uploaded file; BgtError as `probes.dataset.load_items`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(file.name).name
        path.write_bytes(file.content)
        try:
            dataset = load_items(task, lang, path)
        except BgtError as error:  # call the file as the user does
            raise type(error)(str(error).replace(str(path), file.name)) from None
    return replace(dataset, about={**dataset.about, "data": file.name})
