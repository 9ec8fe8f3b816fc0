"""Load the labelled items of a task in a language, from files or built in, with a card that describes them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from bgt_core.data.columns import split_langs
from bgt_core.data.examples import example_sentences, style_sentences
from bgt_core.data.trees import read_conllu, read_trees
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import sha256_file
from bgt_core.grammar import pairs
from probes.data.items import MIN_ITEMS, RARE, SIZES, common, contradicting, distinct, draw_splits, some, with_copies
from probes.data.sources import LABELLED, TaskSource, find_source, pair_of, provenance_of, read_labelled, read_texts
from probes.task import SPLITS, Items, ProbeTask

EXAMPLES, GRAMMAR = "example sentences", "built-in grammar"
GRAMMAR_LANGS = ("en", "fr")
DRAWN = 6_000  # number of sentences drawn from the grammar
MIN_SENTENCES = 500  # labelled sentences; five probe seeds test half of them, with intervals of about 6 points
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


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled items, and their description for a result's trail."""

    items: Items
    about: Mapping[str, Any]  # data, items_sha256, and card for items from a file
    note: str = ""  # a remark for readers on the choice of the data


def dataset_of(items: Items, source: str, note: str = "", **about: Any) -> Dataset:
    """Make a data set of items from `source`, with their hash."""
    parts = [items.sentences, items.labels, items.groups, items.splits]
    text = json.dumps([*parts, items.translations] if items.translations else parts)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return Dataset(items, {"data": source, "items_sha256": sha256, **about}, note)


def check_applicable(task: ProbeTask, lang: str, data: Path | None) -> None:
    """Raise UsageError if the task is not defined in this language, or can't be labelled from sentences alone."""
    task.check(lang)
    if data is None and "text" not in task.builds:
        raise UsageError(f"is needed: task '{task.name}' can't be labelled from sentences alone.", parameter="data")


def label_sentences(
    task: ProbeTask, sentences: Sequence[str] | None, lang: str, *, source: str = "own sentences", seed: int = 0
) -> Dataset:
    """Label sentences by the task.

    None stands for the built-in sentences: the example sentences or, if fewer than `MIN_SENTENCES` of these get a label
    and the grammar has the language, the grammar's. Raises UsageError as `ProbeTask.items`, and NotFound if the
    built-in sentences lack the language or are too few.
    """
    if sentences is not None:
        return dataset_of(task.items(sentences, lang, seed), source)
    real = _labelled_examples(task, lang, seed)
    learnable = common(real)
    labelled = len(set(learnable.groups))
    if labelled < MIN_SENTENCES and lang in GRAMMAR_LANGS and task.group != "style":
        too_few = f"only {labelled} of the example sentences can be labelled, {MIN_SENTENCES} are needed"
        items = task.items([pair.texts[lang] for pair in pairs(DRAWN, seed)], lang, seed)
        return dataset_of(items, GRAMMAR, f"on the {GRAMMAR}: {too_few}")
    if len(learnable.labels) < MIN_ITEMS:
        text = f"is needed: task '{task.name}' can label only {labelled} built-in sentences of '{lang}'."
        raise NotFound(text, parameter="data")
    return dataset_of(real, EXAMPLES)


def _labelled_examples(task: ProbeTask, lang: str, seed: int) -> Items:
    """Label the example sentences, or for tasks of style the sentences that show style, with their English
    translations. English sentences of style have French translations; other English sentences have none."""
    other = "fr" if lang == "en" else "en"
    if task.group == "style":
        chosen = [each for each in style_sentences() if (each.lang, each.other) == (lang, other)]
        texts = {each.text: each.translation for each in chosen}
    elif lang == "en":
        texts = {text: "" for (text,) in example_sentences(["en"])}
    else:
        texts = {row[0]: row[1] for row in example_sentences([lang, other])}
    return task.items(list(texts), lang, seed).translated(list(texts.values()), other)


def load_items(
    task: ProbeTask, lang: str, data: Path | None = None, *, seed: int = 0, senteval: bool = False
) -> Dataset:
    """Load the items of a task from the file or folder `data`, or the built-in items.

    The source's own splits are used, if it has any. A labelled file is cleaned: tokens are joined to text, a sentence
    is used once, or not at all if it has two labels, and its versions are in one split. With `senteval` it is used
    unchanged, in its order, and items without splits are split with SentEval's sizes. The seed only affects random
    draws. Raises NotFound if the source is absent, DataError if it is damaged or too small, UsageError if the task
    can't be labelled from this source, or is not defined for the language.
    """
    if data is None:
        return label_sentences(task, None, lang, seed=seed)
    source = find_source(data, task, lang)
    rng, notes = Random(seed), [f"passed over {line}" for line in source.passed_over]
    verbatim = senteval and source.kind == LABELLED
    if source.kind == LABELLED:
        items = rows = read_labelled(source.files[0], lang, task.reordered, verbatim)
        if not verbatim:
            clear, items = _without_contradictions(rows, notes), distinct(rows)
            _note_left_out(notes, clear, items, "repeated, or in another split, perhaps in another version")
    else:
        items = with_copies(_build(task, source.kind, source.files, lang, rng))
    items = _learnable(items, notes)
    if senteval and items.splits is None:
        drawn = draw_splits(items, rng)
        _note_left_out(notes, items, drawn, "beyond the sizes of the splits")
        items = _learnable(drawn, notes)
    if not items.labels:
        why = "".join(f"{note}; " for note in notes)
        raise DataError(
            f"Task '{task.name}' found no items in {data}: {why}give more sentences of '{lang}', or lines of a split "
            "(tr, va or te), a label and a sentence, with tabs between them."
        )
    counts = Counter(items.splits or ["all"] * len(items.labels))
    if senteval:
        notes += [f"{counts[name]:,} of {SIZES[name]:,} {name} items" for name in SPLITS if counts[name] < SIZES[name]]
    if (classes := len(set(items.labels))) < task.classes:
        notes.append(f"{classes:,} of {task.classes:,} labels")
    card = _card(source, data, items, verbatim, task=task.name, lang=lang, seed=seed, notes=notes)
    return dataset_of(items, str(data), card=card)


def _card(source: TaskSource, data: Path, items: Items, verbatim: bool, **more: object) -> dict[str, Any]:
    """Return the card of a data set as plain values."""
    provenances = list(dict.fromkeys(provenance_of(file, source.kind) for file in source.files))
    sizes = Counter(items.splits or ["all"] * len(items.labels))
    names = {file: file.name if file == data else file.relative_to(data).as_posix() for file in source.files}
    return {
        **more,
        "sources": [provenance.about for provenance in provenances],
        "licences": list(dict.fromkeys(provenance.licence for provenance in provenances)),
        "built": BUILT[source.kind],  # how labels were made; the rules are in the task's file
        "sizes": {name: sizes[name] for name in (*SPLITS, "all") if sizes[name]},  # items per split, or "all"
        "labels": dict(sorted(Counter(items.labels).items(), key=lambda pair: (-pair[1], pair[0]))),
        "tokenisation": VERBATIM if verbatim else TOKENISATION.get(source.kind, "as written"),
        "artefacts": list(dict.fromkeys(line for provenance in provenances for line in provenance.artefacts)),
        "sha256": {name: sha256_file(file) for file, name in names.items()},  # of each file as it is on disk
    }


def _build(task: ProbeTask, kind: str, files: tuple[Path, ...], lang: str, rng: Random) -> Items:
    """Label the content of files; sentences that are translations of each other are one group."""
    build = task.builds[kind]
    if kind == "conllu":
        return build(read_conllu(files), lang, rng)
    if kind == "trees":
        return build(read_trees(files), lang, rng)
    if kind == "texts":
        return build(read_texts(files, split_langs(lang)), lang, rng)
    named = [pair_of(file) for file in files]
    other = next((each for each in named[0] if each != lang), "") if named[0] and all(named) else ""
    texts = read_texts(files, [lang, *filter(None, [other])])
    items = build(texts[lang].sentences, lang, rng)
    groups = [texts[lang].groups[index] for index in items.groups]
    if other:
        of_group = dict(zip(texts[other].groups, texts[other].sentences, strict=True))
        items = items.translated([of_group.get(group, "") for group in texts[lang].groups], other)
    return replace(items, groups=groups)


def _learnable(items: Items, notes: list[str]) -> Items:
    kept = common(items)
    why = "their label is not in train" if items.splits else f"their label has fewer than {RARE}"
    _note_left_out(notes, items, kept, f"{why}, {some(set(items.labels) - set(kept.labels))}")
    return kept


def _without_contradictions(items: Items, notes: list[str]) -> Items:
    """Leave out sentences that have several labels, and note this."""
    unclear = contradicting(items)
    kept = items.take([row for row, sentence in enumerate(items.sentences) if sentence not in unclear])
    for sentence, labels in list(unclear.items())[:1]:
        _note_left_out(notes, items, kept, f"copies with contradicting labels, as '{sentence[:60]}': {some(labels)}")
    return kept


def _note_left_out(notes: list[str], before: Items, after: Items, why: str) -> None:
    if count := len(before.labels) - len(after.labels):
        notes.append(f"{count:,} {'item' if count == 1 else 'items'} left out: {why}")
