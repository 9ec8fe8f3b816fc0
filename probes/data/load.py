"""Load a task in a language from a folder: its items, and a card that describes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from bgt_core.data.columns import split_langs
from bgt_core.data.trees import read_conllu, read_trees
from bgt_core.errors import DataError
from bgt_core.files import sha256_file
from probes.data.corpora import provenance_of
from probes.data.folder import LABELLED, TaskSource, find_source
from probes.data.items import RARE, SIZES, common, contradicting, distinct, draw_splits, some, with_copies
from probes.data.labelled import read_labelled
from probes.data.texts import pair_of, read_texts
from probes.task import SPLITS, Items, ProbeTask

BUILT = {
    LABELLED: "labels of the file",
    "conllu": "labels from parses (CoNLL-U)",
    "trees": "labels from bracketed trees",
    "text": "labels from the text",
    "texts": "the label is the language of the text",
}
VERBATIM = "tokens of the file as they stand"
TOKENISATION = {
    LABELLED: "tokens of the file joined to text",
    "conllu": "as written, by SpaceAfter",
    "trees": "tokens of the trees joined to text",
}


@dataclass(frozen=True)
class DataCard:
    """The card of a data set."""

    task: str
    lang: str
    sources: list[str]
    licences: list[str]
    built: str  # how labels were made; the rules are in the task's file
    seed: int
    sizes: dict[str, int]  # items of each split, or of "all"
    labels: dict[str, int]  # items of each label, the commonest first
    tokenisation: str
    artefacts: list[str]
    sha256: dict[str, str]  # of each file as it is on disk
    notes: list[str]  # items left out, and splits smaller than the paper's

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def load_task(
    task: ProbeTask,
    lang: str,
    data: Path,
    seed: int = 0,
    sizes: Mapping[str, int] | None = SIZES,
    column: int | None = None,
    verbatim: bool = False,
) -> tuple[Items, DataCard]:
    """Load the items of a task from a file or folder, with their card.

    Splits are the source's own if it has them; otherwise they are drawn with `sizes`, by default the paper's, scaled
    down if there are fewer items; None gives no splits. The seed only affects draws. With `verbatim` a labelled file's
    items are those of SentEval: in its order, with its text unchanged and repeats included. Raises NotFound for an
    absent source, DataError for a damaged or too small one, UsageError for a task that can't be labelled from this
    source, or a language that it does not have.
    """
    source = find_source(data, task, lang)
    rng, notes = Random(seed), [f"passed over {line}" for line in source.passed_over]
    if source.kind == LABELLED:
        rows = read_labelled(source.files[0], lang, task.reordered, verbatim)
        items = rows if verbatim else distinct(rows)
        clear = rows if verbatim else _clear(rows, notes)
        _note_left_out(notes, clear, items, "repeated, or in another split, perhaps in another version")
    else:
        items = with_copies(_build(task, source.kind, source.files, lang, rng, column))
    items = _learnable(items, notes)
    if items.splits is None and sizes is not None:
        drawn = draw_splits(items, rng, sizes)
        _note_left_out(notes, items, drawn, "beyond the sizes of the splits")
        items = _learnable(drawn, notes)
    if not items.labels:
        why = "".join(f"{note}; " for note in notes)
        raise DataError(
            f"Task '{task.name}' found no items in {data}: {why}give more sentences of '{lang}', or lines of a split "
            "(tr, va or te), a label and a sentence, with tabs between them."
        )
    counts = Counter(items.splits or ["all"] * len(items.labels))
    if sizes is not None:
        notes += [
            f"{counts[split]:,} of {sizes[split]:,} {split} items" for split in SPLITS if counts[split] < sizes[split]
        ]
    if (classes := len(set(items.labels))) < task.classes:
        notes.append(f"{classes:,} of {task.classes:,} labels")
    sha256 = {_name(file, data): sha256_file(file) for file in source.files}
    card = _card(task, lang, source, seed, items, sha256, notes)
    if verbatim and source.kind == LABELLED:
        card = replace(card, tokenisation=VERBATIM)
    return items, card


def _card(
    task: ProbeTask, lang: str, source: TaskSource, seed: int, items: Items, sha256: dict[str, str], notes: list[str]
) -> DataCard:
    provenances = list(dict.fromkeys(provenance_of(file, source.kind) for file in source.files))
    sizes = Counter(items.splits or ["all"] * len(items.labels))
    return DataCard(
        task=task.name,
        lang=lang,
        sources=[provenance.about for provenance in provenances],
        licences=list(dict.fromkeys(provenance.licence for provenance in provenances)),
        built=BUILT[source.kind],
        seed=seed,
        sizes={name: sizes[name] for name in (*SPLITS, "all") if sizes[name]},
        labels=dict(sorted(Counter(items.labels).items(), key=lambda pair: (-pair[1], pair[0]))),
        tokenisation=TOKENISATION.get(source.kind, "as written"),
        artefacts=list(dict.fromkeys(line for provenance in provenances for line in provenance.artefacts)),
        sha256=sha256,
        notes=notes,
    )


def _build(task: ProbeTask, kind: str, files: tuple[Path, ...], lang: str, rng: Random, column: int | None) -> Items:
    """Label the content of files; sentences that are translations of each other form a group."""
    build = task.builds[kind]
    if kind == "conllu":
        return build(read_conllu(files), lang, rng)
    if kind == "trees":
        return build(read_trees(files), lang, rng)
    pairs = [pair_of(file) for file in files] if kind == "text" and column is None else []
    others = [next(each for each in pair if each != lang) for pair in pairs[:1] if pair and all(pairs)]
    texts = read_texts(files, [*split_langs(lang), *others], column)
    if kind == "texts":
        return build(texts, lang, rng)
    items = build(texts[lang].sentences, lang, rng)
    groups = [texts[lang].groups[index] for index in items.groups]
    for other in others:
        of_group = dict(zip(texts[other].groups, texts[other].sentences, strict=True))
        items = items.translated([of_group.get(group, "") for group in texts[lang].groups], other)
    return replace(items, groups=groups)


def _learnable(items: Items, notes: list[str]) -> Items:
    kept = common(items)
    why = "their label is not in train" if items.splits else f"their label has fewer than {RARE}"
    _note_left_out(notes, items, kept, f"{why}, {some(set(items.labels) - set(kept.labels))}")
    return kept


def _clear(items: Items, notes: list[str]) -> Items:
    """The items without sentences that have several labels, which are noted."""
    unclear = contradicting(items)
    kept = items.take([row for row, sentence in enumerate(items.sentences) if sentence not in unclear])
    for sentence, labels in list(unclear.items())[:1]:
        _note_left_out(notes, items, kept, f"copies with contradicting labels, as '{sentence[:60]}': {some(labels)}")
    return kept


def _note_left_out(notes: list[str], before: Items, after: Items, why: str) -> None:
    count = len(before.labels) - len(after.labels)
    if count:
        notes.append(f"{count:,} {'item' if count == 1 else 'items'} left out: {why}")


def _name(file: Path, data: Path) -> str:
    return file.name if file == data else file.relative_to(data).as_posix()
