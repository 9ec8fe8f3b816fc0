"""A task in a language from a folder: its items, and the card that says what they are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from bgt_core.errors import DataError
from probes.data.conllu import read_conllu
from probes.data.corpora import corpus_of
from probes.data.items import RARE, SIZES, common, distinct, draw_splits
from probes.data.labelled import read_labelled
from probes.data.sources import LABELLED, find_source
from probes.data.texts import read_texts
from probes.data.trees import read_trees
from probes.task import SPLITS, Items, ProbeTask

BUILT = {
    LABELLED: "labels of the file",
    "conllu": "labels from parses (CoNLL-U)",
    "trees": "labels from bracketed trees",
    "text": "labels from the text",
    "texts": "the label is the language of the text",
}
TOKENISATION = {
    LABELLED: "tokens of the file joined to text",
    "conllu": "as written, by SpaceAfter",
    "trees": "tokens of the trees joined to text",
}


@dataclass(frozen=True)
class Card:
    """What a reader of a score must know of its data."""

    task: str
    lang: str
    sources: list[str]
    licences: list[str]
    built: str  # what labels were made from; the rules are in the task's file
    seed: int
    sizes: dict[str, int]  # items of each split, or of "all"
    labels: dict[str, int]  # items of each label, the commonest first
    tokenisation: str
    artefacts: list[str]
    sha256: dict[str, str]  # of each file as it lies on the disk
    notes: list[str]  # what was left out, and what is smaller than the paper's

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def load_task(
    task: ProbeTask,
    lang: str,
    where: Path,
    seed: int = 0,
    sizes: Mapping[str, int] | None = SIZES,
    column: int | None = None,
) -> tuple[Items, Card]:
    """Items of a task from a file or folder, and their card.

    Splits are the source's own where it has them; otherwise they are drawn as `sizes` says, the paper's
    unless told otherwise, and smaller in proportion with fewer items; with None there are none. Seeds order nothing but
    what is drawn. Raises BgtError for what is absent (3), damaged (4) or too little.
    """
    source = find_source(where, task, lang)
    rng, notes = Random(seed), [f"passed over {line}" for line in source.passed_over]
    if source.kind == LABELLED:
        read = read_labelled(source.files[0], lang, task.reordered)
        items = distinct(read)
        _left_out(notes, read, items, "twice there, or in another split in this or another version")
    else:
        items = _built(task, source.kind, source.files, lang, rng, column)
    items = _learnable(items, notes)
    if items.splits is None and sizes is not None:
        drawn = draw_splits(items, rng, sizes)
        _left_out(notes, items, drawn, "more than the splits hold")
        items = _learnable(drawn, notes)
    if not items.labels:
        raise DataError(f"Task '{task.name}' found no items in {where}: give more sentences of '{lang}'.")
    found = Counter(items.splits or ["all"] * len(items.labels))
    if sizes is not None:
        notes += [
            f"{found[split]:,} of {sizes[split]:,} {split} items" for split in SPLITS if found[split] < sizes[split]
        ]
    labels = Counter(items.labels)
    if len(labels) < task.classes:
        notes.append(f"{len(labels):,} of {task.classes:,} labels")
    corpora = list(dict.fromkeys(corpus_of(file, source.kind) for file in source.files))
    card = Card(
        task=task.name,
        lang=lang,
        sources=[corpus.about for corpus in corpora],
        licences=list(dict.fromkeys(corpus.licence for corpus in corpora)),
        built=BUILT[source.kind],
        seed=seed,
        sizes={name: found[name] for name in (*SPLITS, "all") if found[name]},
        labels=dict(sorted(labels.items(), key=lambda pair: (-pair[1], pair[0]))),
        tokenisation=TOKENISATION.get(source.kind, "as written"),
        artefacts=list(dict.fromkeys(line for corpus in corpora for line in corpus.artefacts)),
        sha256={_name(file, where): _digest(file) for file in source.files},
        notes=notes,
    )
    return items, card


def _built(task: ProbeTask, kind: str, files: tuple[Path, ...], lang: str, rng: Random, column: int | None) -> Items:
    """Labels made from what the files hold; sentences that say the same are one group."""
    build = task.builds[kind]
    if kind == "conllu":
        return build(read_conllu(files), lang, rng)
    if kind == "trees":
        return build(read_trees(files, lang), lang, rng)
    texts = read_texts(files, lang.split("-"), column)
    if kind == "texts":
        return build(texts, lang, rng)
    items = build(texts[lang].sentences, lang, rng)
    return Items(items.sentences, items.labels, [texts[lang].groups[place] for place in items.groups])


def _learnable(items: Items, notes: list[str]) -> Items:
    kept = common(items)
    why = "their label is not in train" if items.splits else f"their label has fewer than {RARE}"
    _left_out(notes, items, kept, why)
    return kept


def _left_out(notes: list[str], before: Items, after: Items, why: str) -> None:
    gone = len(before.labels) - len(after.labels)
    if gone:
        notes.append(f"{gone:,} {'item' if gone == 1 else 'items'} left out: {why}")


def _name(file: Path, where: Path) -> str:
    return file.name if file == where else file.relative_to(where).as_posix()


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
