"""A table of cells: which there are, what each is measured on, and those measured before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bgt_core import __version__
from bgt_core.contracts import LANGUAGE, SentenceEncoder
from bgt_core.errors import BgtError
from probes.data.items import SIZES
from probes.data.load import load_task
from probes.data.splitfile import read_splits, with_splits
from probes.data.texts import default_sentences
from probes.measures.study import ProbeConfig
from probes.results.cache import RESULTS, Cache, key, with_cache
from probes.results.store import Cell, cell_of, read_cell, write_cell
from probes.run import check, run_probe
from probes.task import Items, ProbeTask

BUILT_IN = "built-in grammar"


@dataclass(frozen=True)
class Model:
    """An encoder, what it is called, and what stands beside it."""

    name: str
    encoder: SentenceEncoder
    latents: tuple[str, ...]  # those asked for
    seeds: tuple[SentenceEncoder, ...] = ()  # other trainings of it
    others: Mapping[str, Sequence[SentenceEncoder]] | None = None  # to beat: untrained, the mean of its pieces

    def latents_of(self, lang: str) -> list[str]:
        """Those that can be probed in it: language latents have no space that two languages share."""
        return [name for name in self.latents if "-" not in lang or name != LANGUAGE] or list(self.latents)

    def check(self, lang: str) -> None:
        """BgtError for a language or latent that it has not."""
        for encoder in (self.encoder, *self.seeds):
            check(encoder, lang, self.latents_of(lang))


def measured(
    model: Model,
    task: ProbeTask,
    lang: str,
    material: tuple[Items, dict],
    wish: ProbeConfig,
    cache: Cache | None,
    report: Callable[[str], None],
) -> Cell:
    """The cell, from the cache where it is there. `material` are the items and what their trail says of them."""
    items, about = material
    latents = model.latents_of(lang)
    model.check(lang)
    name = kept_as(model, task, lang, about, wish) if cache else None
    if name and (found := read_cell(cache.path(RESULTS, name), model.name)):
        report(f"{task.name} {lang}: {model.name}, measured {found.trail['measured']}")
        return found
    remembered = [with_cache(encoder, cache) for encoder in (model.encoder, *model.seeds)]
    others = {other: [with_cache(one, cache) for one in several] for other, several in (model.others or {}).items()}
    result = run_probe(
        remembered[0],
        task,
        lang,
        items,
        latents=latents,
        encoder_seeds=remembered[1:],
        others=others,
        report=report,
        **asdict(wish),
    )
    trail = {
        **about,
        "fingerprint": getattr(model.encoder, "fingerprint", "") or "unknown",
        "version": __version__,
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
        "probe": "paper" if wish.paper else wish.probe,
        "langs": list(model.encoder.langs),
        "latents": latents,
    }
    cell = cell_of(model.name, result, trail)
    if name:
        with cache.writing(RESULTS, name) as partial:
            write_cell(partial, cell)
    return cell


def kept_as(model: Model, task: ProbeTask, lang: str, about: Mapping[str, object], wish: ProbeConfig) -> str | None:
    """The name of a cell in the cache; None where an encoder doesn't say what it is made of."""
    others = model.others or {}
    encoders = [model.encoder, *model.seeds, *(one for several in others.values() for one in several)]
    fingerprint = [getattr(encoder, "fingerprint", "") for encoder in encoders]
    if not all(fingerprint):
        return None
    names = [(other, len(several)) for other, several in others.items()]
    asked = {"fingerprint": fingerprint, "others": names, "latents": model.latents_of(lang), "about": about}
    return key(task=task.name, lang=lang, wish=asdict(wish), **asked)


def material_of(
    task: ProbeTask, lang: str, data: Path | None, column: int | None, wish: ProbeConfig, split_file: Path | None = None
) -> tuple[Items, dict]:
    """The items of a task, from `data` or the built-in grammar, and what a trail says of them."""
    if data is None:
        items, card = task.items(default_sentences(lang, wish.seed), lang, wish.seed), None
    else:
        sizes = SIZES if wish.paper and not split_file else None
        items, card = load_task(task, lang, data, wish.seed, sizes, column)
    if split_file:
        items = with_splits(items, read_splits(split_file))
    text = json.dumps([items.sentences, items.labels, items.groups, items.splits])
    digest = hashlib.sha256(text.encode()).hexdigest()
    where = {"data": str(data) if data else BUILT_IN, "items_sha256": digest}
    where |= {"split_file": str(split_file)} if split_file else {}
    return items, where | ({"card": card.as_dict()} if card else {})


def without_text(task: ProbeTask, lang: str, data: Path | None) -> str:
    """Why a task can't be asked in a language, or "": it has no definition there, or nothing to be labelled from."""
    try:
        task.check(lang)
    except BgtError as error:
        return str(error)
    if data is None and "text" not in task.builds:
        return f"Task '{task.name}' can't be labelled from sentences alone: give --data."
    return ""
