"""`bgt-probe --dry-run`: the cells to measure, their size, and which results are cached."""

from __future__ import annotations

import json

import typer

from bgt_core.errors import BgtError
from bgt_core.tables import show
from probes.cells import cell_path
from probes.cli.measuring import FAILED, last, say, say_failed, skipped
from probes.grid import Grid, Slot
from probes.measures.study import prepare
from probes.probe import senteval_config

COLUMNS = ["task", "lang", "model", "probe", "items", "train", "test", "classes", "vectors", "probes", "result"]


def plan(grid: Grid, context: typer.Context, as_json: bool) -> int:
    """Print the plan; return the exit code that measuring would give before it trains a probe."""
    rows: list[list[str | int]] = []
    failures: list[BgtError] = []
    for label, outcome in grid.each(lambda slot: plan_row(slot, grid), say, skipped(context)):
        if isinstance(outcome, BgtError):
            say_failed(label, outcome, context)
            failures.append(outcome)
        else:
            rows.append(outcome)
    if failures and not rows:
        raise last(failures[0])
    if as_json:
        document = {"schema": "bgt-probe-plan/1", "plan": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        show(COLUMNS, [list(map(str, row)) for row in rows], text=4)
    return FAILED if failures else 0


def plan_row(slot: Slot, grid: Grid) -> list[str | int]:
    """One cell: its items, and the numbers of vectors to embed and probes to train, 0 for a cached result."""
    subject, task, lang, dataset, config = slot
    subject.check(lang)
    used = senteval_config(config) if grid.senteval else config
    study = prepare(task, dataset.items, lang=lang, config=used)
    train, _, test = study.cuts[0]
    path = cell_path(grid.cache, subject, task, dataset, lang=lang, config=config, senteval=grid.senteval)
    kept = path is not None and path.is_file()
    own = len(subject.latents_in(lang)) * (1 + len(subject.encoder_seeds))  # vectors of a sentence
    others = sum(map(len, subject.references.values()))
    vectors = 0 if kept else own + others
    controlled = own * (2 if config.control and not grid.senteval else 1)
    probes = 0 if kept else (controlled + others) * len(study.cuts)
    counts = [len(study.labels), len(train), len(test), len(study.names), vectors * len(study.labels), probes]
    probe = "senteval" if grid.senteval else config.probe
    return [task.name, lang, subject.name, probe, *counts, "kept" if kept else "to measure"]
