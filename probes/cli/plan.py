"""`bgt-probe --dry-run`: what would be measured, how much that is, and what is kept already."""

from __future__ import annotations

import json
import sys

from bgt_core.errors import BgtError
from bgt_core.tables import show
from probes.cells import kept_as
from probes.cli import work
from probes.cli.wishes import CliOptions
from probes.measures.study import prepare
from probes.results.cache import RESULTS, Cache

COLUMNS = ["task", "lang", "model", "probe", "items", "train", "test", "classes", "vectors", "probes", "result"]


def plan(wishes: CliOptions) -> int:
    """Print it; the exit code that measuring would meet before it trains a probe."""
    wishes.check()
    models = work.open_all(wishes)
    work.compared(wishes.compare, models)
    rows, failures = [], []
    for label, found in work.each(wishes, models, row):
        if isinstance(found, BgtError):
            print(f"bgt-probe: {label}: {found}", file=sys.stderr)
            failures.append(found)
        else:
            rows.append(found)
    if wishes.as_json:
        document = {"schema": "bgt-probe-plan/1", "plan": [dict(zip(COLUMNS, one, strict=True)) for one in rows]}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        show(COLUMNS, [list(map(str, one)) for one in rows], text=4)
    if failures and not rows:
        return failures[0].exit_code
    return 5 if failures else 0


def row(place: work.Place, cache: Cache | None) -> list[str | int]:
    """One cell: its items, and the vectors to make and probes to train; 0 of both where its result is kept."""
    model, task, lang, (items, about), wish = place
    model.check(lang)
    study = prepare(task, lang, items, wish)
    train, _, test = study.cuts[0]
    name = kept_as(model, task, lang, about, wish) if cache else None
    there = bool(name and cache.path(RESULTS, name).is_file())
    read = 0 if there else len(model.latents_of(lang)) * (1 + len(model.seeds))  # vectors of a sentence
    probes = read * len(study.cuts) * (2 if wish.control and not wish.paper else 1)
    sizes = [len(study.labels), len(train), len(test), len(study.names), read * len(study.labels), probes]
    return [
        task.name,
        lang,
        model.name,
        "paper" if wish.paper else wish.probe,
        *sizes,
        "kept" if there else "to measure",
    ]
