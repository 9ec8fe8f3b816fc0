"""Probes trained while somebody waits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

from app.options import Corpus
from app.spaces import sentences
from app.state import Loaded, Shared
from bgt_core import __version__
from probes.cells import BUILT_IN
from probes.results.store import Cell, cell_of
from probes.run import run_probe
from probes.tasks import TASKS


def tasks(lang: str) -> list[str]:
    """The tasks that are defined in a language and need nothing but its sentences."""
    return [task.name for task in TASKS.values() if "text" in task.builds and lang in (task.langs or (lang,))]


def measured(
    loaded: Loaded,
    task: str,
    lang: str,
    corpus: Corpus | None,
    items: int,
    seeds: int,
    report: Callable[[str], None],
    curve: bool = False,
) -> Cell:
    """What `bgt-probe` measures, on the built-in sentences where no corpus is given.

    `report` is told each step; what it raises ends the work.
    """
    file = corpus.file if corpus else None
    texts = None
    if file:
        table = sentences(corpus, items)
        texts = table.loc[table["lang"] == lang, "text"].tolist()
    found = run_probe(Shared(loaded), task, lang, texts, max_items=items, seeds=seeds, curve=curve, report=report)
    used = found.items
    text = json.dumps([used.sentences, used.labels, used.groups, used.splits])
    trail = {
        "data": str(file) if file else BUILT_IN,
        "items_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "fingerprint": loaded.bgt.fingerprint,
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "linear",
        "langs": list(loaded.bgt.langs),
        "latents": list(loaded.bgt.latents),
    }
    return cell_of(loaded.title, found, trail)
