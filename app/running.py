"""Probes trained while somebody waits."""

from __future__ import annotations

from collections.abc import Callable

import probes
from app import startup
from app.spaces import sentences
from app.startup import ParallelText
from app.state import Loaded
from probes.data.built_in import GRAMMAR, grammar_sentences
from probes.dataset import label_sentences
from probes.tasks import TASKS


def tasks(lang: str) -> list[str]:
    """The tasks that are defined in a language and need nothing but its sentences."""
    return [task.name for task in TASKS.values() if "text" in task.builds and lang in (task.langs or (lang,))]


def run(
    loaded: Loaded,
    task: str,
    lang: str,
    text: ParallelText | None,
    items: int,
    seeds: int,
    report: Callable[[str], None],
    curve: bool = False,
) -> probes.Cell:
    """What `bgt-probe` measures, on what it takes by default where no text is given.

    `report` is told each step; what it raises ends the work.
    """
    config = probes.ProbeConfig(max_items=items, seeds=seeds, curve=curve)
    dataset = None
    if text == startup.GRAMMAR:
        dataset = label_sentences(TASKS[task], grammar_sentences(lang), lang, source=GRAMMAR)
    elif text and text.file:
        table = sentences(text, items)
        lines = table.loc[table["lang"] == lang, "text"].tolist()
        dataset = label_sentences(TASKS[task], lines, lang, source=str(text.file))
    return probes.measure_cell(
        loaded.encoder, task, dataset, lang=lang, name=loaded.title, config=config, report=report
    )
