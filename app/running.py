"""Probes trained while somebody waits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from app.spaces import sentences
from app.startup import ParallelText
from app.state import Loaded
from bgt_core import __version__
from probes.cells import BUILT_IN
from probes.result import ProbeResult
from probes.results.store import Cell, cell_of
from probes.run import run_probe
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
) -> Cell:
    """What `bgt-probe` measures, on the built-in sentences where no text is given.

    `report` is told each step; what it raises ends the work.
    """
    lines = None
    if text and text.file:
        table = sentences(text, items)
        lines = table.loc[table["lang"] == lang, "text"].tolist()
    result = run_probe(
        loaded.encoder, task, lang, lines, latents=loaded.encoder.latents, max_items=items, seeds=seeds, curve=curve,
        report=report,
    )  # fmt: skip
    return cell_of(loaded.title, result, trail_of(loaded, result, text))


def trail_of(loaded: Loaded, result: ProbeResult, text: ParallelText | None) -> dict[str, Any]:
    """Which weights, data, code and day a result comes from."""
    items = result.items
    assert items is not None  # a fresh result has them
    content = json.dumps([items.sentences, items.labels, items.groups, items.splits])
    return {
        "data": str(text.file) if text and text.file else BUILT_IN,
        "items_sha256": hashlib.sha256(content.encode()).hexdigest(),
        "fingerprint": loaded.encoder.fingerprint,
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "linear",
        "langs": list(loaded.encoder.langs),
        "latents": list(loaded.encoder.latents),
    }
