"""Load the labelled items of a task in a language, from files or built-in sentences, and describe them in a card."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bgt_core.data.columns import split_langs
from bgt_core.data.examples import example_sentences, style_sentences
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import normalise
from bgt_core.data.textfile import column_hint, lines, text_lines, uncompressed
from bgt_core.data.trees import detokenise, read_conllu, read_trees
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import sha256_file
from bgt_core.grammar import pairs
from probes.task import (
    MIN_ITEMS,
    RARE,
    SIZES,
    SPLITS,
    Items,
    ProbeTask,
    common,
    contradicting,
    distinct,
    draw_splits,
    needs,
    some,
    split_words,
    with_copies,
)

LABELLED = "labelled"
TREES = (".mrg", ".ptb", ".trees")
SPLIT_NAMES = {"tr": "train", "va": "dev", "te": "test"}
_LANG = re.compile(r"[a-z]{2}(-[A-Z\d]\w+)*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
EXAMPLES, GRAMMAR = "example sentences", "built-in grammar"
GRAMMAR_LANGS = ("en", "fr")
DRAWN = 6_000  # number of sentences drawn from the grammar
MIN_SENTENCES = 500  # minimum number of labelled examples; five seeds test half of them, with intervals of 6 points
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
    """Labelled items and their description."""

    items: Items
    about: Mapping[str, Any]  # entries of a result's trail: data, items_sha256 and, for items from a file, card
    note: str = ""  # why other sentences than the example sentences are used


def dataset_of(items: Items, source: str, note: str = "", **about: Any) -> Dataset:
    """Make a data set, and add a hash of the items; `source` describes where they come from."""
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
    """Give `sentences` the labels of the task; if `sentences` is None, label the built-in example sentences.

    If fewer than `MIN_SENTENCES` of the examples get a label, and the built-in grammar covers the language, sentences
    of the grammar replace them. Raises UsageError as `ProbeTask.items` does, and NotFound if there are
    too few built-in sentences in the language.
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
    """Label the example or style sentences, with English translations (French translations for English style)."""
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
    """Load the items of a task from the file or folder `data`, or label the built-in sentences.

    Splits of a labelled file are kept. The file is cleaned: tokens are joined to text, a sentence is used once, or not
    at all if it has two labels, and the versions of a sentence are in one split. With `senteval` the file is used
    unchanged, in its order, and items without splits are divided into splits of SentEval's sizes. The seed affects only
    random draws.

    Raises NotFound if the source is absent, DataError if it is damaged or too small, UsageError if the task can't be
    labelled from this source, or is not defined for the language.
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
    """Describe a data set for the trail: sources, licences, labels, sizes, hashes."""
    provenances = list(dict.fromkeys(provenance_of(file, source.kind) for file in source.files))
    sizes = Counter(items.splits or ["all"] * len(items.labels))
    names = {file: file.name if file == data else file.relative_to(data).as_posix() for file in source.files}
    return {
        **more,
        "sources": [provenance.about for provenance in provenances],
        "licences": list(dict.fromkeys(provenance.licence for provenance in provenances)),
        "built": BUILT[source.kind],  # how the sentences were labelled
        "sizes": {name: sizes[name] for name in (*SPLITS, "all") if sizes[name]},  # number of items
        "labels": dict(sorted(Counter(items.labels).items(), key=lambda pair: (-pair[1], pair[0]))),
        "tokenisation": VERBATIM if verbatim else TOKENISATION.get(source.kind, "as written"),
        "artefacts": list(dict.fromkeys(line for provenance in provenances for line in provenance.artefacts)),
        "sha256": {name: sha256_file(file) for file, name in names.items()},  # hash of each file as it is on disk
    }


def _build(task: ProbeTask, kind: str, files: tuple[Path, ...], lang: str, rng: Random) -> Items:
    """Label the sentences in files; sentences that are translations of each other are one group."""
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
    """Leave out items whose label can't be learnt, and add a note about them."""
    kept = common(items)
    why = "their label is not in train" if items.splits else f"their label has fewer than {RARE}"
    _note_left_out(notes, items, kept, f"{why}, {some(set(items.labels) - set(kept.labels))}")
    return kept


def _without_contradictions(items: Items, notes: list[str]) -> Items:
    """Leave out sentences that have several labels, and add a note about them."""
    unclear = contradicting(items)
    kept = items.take([row for row, sentence in enumerate(items.sentences) if sentence not in unclear])
    for sentence, labels in list(unclear.items())[:1]:
        _note_left_out(notes, items, kept, f"copies with contradicting labels, as '{sentence[:60]}': {some(labels)}")
    return kept


def _note_left_out(notes: list[str], before: Items, after: Items, why: str) -> None:
    if count := len(before.labels) - len(after.labels):
        notes.append(f"{count:,} {'item' if count == 1 else 'items'} left out: {why}")


# Find and read the files of a task.


class TaskSource(NamedTuple):
    """The files from which a task's items are made."""

    kind: str  # "labelled", or a kind of source in `ProbeTask.builds`
    files: tuple[Path, ...]
    passed_over: tuple[str, ...] = ()  # a message for each file that was skipped, because it does not have two columns


class Text(NamedTuple):
    """N different sentences of one language, normalised. Sentences that share a translation are in one group."""

    sentences: list[str]
    groups: list[int]


def find_source(data: Path, task: ProbeTask, lang: str) -> TaskSource:
    """Find the best source for a task in a language in the folder `data` and its subfolders, or use `data`, a file.

    Files of labelled sentences come first. Their folder may be named after their language; otherwise they are English.
    Then come trees (fr/*.mrg, fr.mrg), CoNLL-U (fr_*.conllu, fr/*.conllu, fr.conllu) and text (fr.txt, or en-fr.*.tsv,
    whose name lists its columns), if the task can be labelled from them. A TSV without exactly two columns is skipped,
    because sets of similarity scores may be named like translations (en-ar.tsv of STS). Raises NotFound if there is no
    source, UsageError if the task can't be labelled from the file or is not defined for the language.
    """
    task.check(lang)
    langs = split_langs(lang)
    if data.is_file():
        kind = _kind_of_file(data, task)
        if kind != LABELLED and kind not in task.builds:
            raise UsageError(f"{data}: task '{task.name}' can't be labelled from this; it needs {needs(task)}.")
        return TaskSource(kind, (data,))
    if not data.is_dir():
        raise NotFound(f"{data}: no such file or folder.", parameter="data")
    files = sorted(path for path in data.rglob("*") if path.is_file())
    labelled = [file for file in files if task.file and _stem(file) == task.file and _folder_is(file, lang)]
    for suffix in (".txt", ".tsv"):
        for file in labelled:
            if uncompressed(file.name).endswith(suffix):
                return TaskSource(LABELLED, (file,))
    passed_over: list[str] = []
    for kind in task.builds:
        candidates = [file for file in files if _is_source(file, kind, langs)]
        columns = {file: len(_first_cells(file)) for file in candidates if pair_of(file)}
        passed_over += [
            f"{file.relative_to(data)}: {count} columns, translations have 2"
            for file, count in columns.items()
            if count != 2
        ]
        candidates = [file for file in candidates if columns.get(file, 2) == 2]
        if kind == "texts":  # translations are preferred, because their topics are the same in every language
            pairs = [file for file in candidates if pair_of(file)]
            candidates = next((group for group in (pairs, candidates) if _langs_of(group) >= set(langs)), [])
        if candidates:
            return TaskSource(kind, tuple(candidates), tuple(passed_over))
    raise NotFound(
        f"No '{lang}' data for task '{task.name}' in {data}: it needs {needs(task, lang)}"
        f"{''.join(f' (passed over {line})' for line in passed_over)}."
        f"{' Get it with bgt data download senteval-probing.' if task.file and lang == 'en' else ''}",
    )


def _kind_of_file(file: Path, task: ProbeTask) -> str:
    """Return the kind of source of a single file, by its suffix or its first line."""
    name = uncompressed(file.name)
    if name.endswith((".conllu", *TREES)):
        return "conllu" if name.endswith(".conllu") else "trees"
    first = _first_cells(file)
    if len(first) > 2 and first[0].decode(errors="replace") in SPLIT_NAMES:
        return LABELLED
    return "texts" if "texts" in task.builds else "text"


def _first_cells(file: Path) -> list[bytes]:
    return next(lines(file), b"").split(b"\t")


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


def _folder_is(file: Path, lang: str) -> bool:
    """Return whether a labelled file is in a folder of this language; folders without a language code are English."""
    folder = file.absolute().parent.name
    return folder == lang or (lang == "en" and not _LANG.fullmatch(folder))


def _is_source(file: Path, kind: str, langs: Sequence[str]) -> bool:
    """Return whether a file has the name of this kind of source in one of `langs`."""
    name, folder = uncompressed(file.name), file.absolute().parent.name
    if kind in ("conllu", "trees"):
        start = re.split("[_.]", name)[0]
        return name.endswith(".conllu" if kind == "conllu" else TREES) and langs[0] in (start, folder)
    if pair := pair_of(file):
        return set(pair) <= set(langs) if kind == "texts" else langs[0] in pair
    return any(name == f"{lang}.txt" for lang in langs)


def _langs_of(files: Sequence[Path]) -> set[str]:
    return {lang for file in files for lang in (pair_of(file) or (_stem(file),))}


def pair_of(file: Path) -> tuple[str, str] | None:
    """Return the languages in the name of a TSV of translations, as (en, fr) for en-fr.corpus.tsv.xz; else None."""
    name, *rest = file.name.split(".")
    langs = split_langs(name)
    primary = [lang.partition("-")[0] for lang in langs]
    return (langs[0], langs[1]) if "tsv" in rest and list(map(len, primary)) == [2, 2] else None


def read_labelled(file: Path, lang: str, reordered: bool = False, verbatim: bool = False) -> Items:
    """Read a file in the format of SentEval's data/probing: split, label, other columns and tokens, separated by tabs.

    Tokens are joined to text, and quotes that a CSV writer added are removed. With `verbatim`, quotes stay, and tokens
    are joined by single spaces, as in SentEval. Rows with the same words in the same order form one group; with
    `reordered`, also in another order. Raises DataError, with file and line, for an invalid line.
    """
    items = Items()
    splits: list[str] = []
    groups: dict[tuple[str, ...], int] = {}  # words -> group
    for number, line in text_lines(file):
        cells = line.rstrip().split("\t")
        if len(cells) < 3:
            hint = column_hint(line, 3)
            raise DataError(f"{file}:{number}: {len(cells)} of 3 columns; expected split, label, sentence{hint}.")
        if cells[0] not in SPLIT_NAMES:
            raise DataError(f"{file}:{number}: split '{cells[0]}'; expected {', '.join(SPLIT_NAMES)}.")
        tokens = cells[-1]
        if not verbatim and '""' in tokens and _QUOTED.fullmatch(tokens):
            tokens = tokens[1:-1].replace('""', '"')
        sentence = " ".join(tokens.split()) if verbatim else detokenise(tokens, lang)
        if not (sentence and cells[1].strip()):
            raise DataError(f"{file}:{number}: an empty {'label' if sentence else 'sentence'}; expected text.")
        words = split_words(sentence.casefold())
        group = groups.setdefault(tuple(sorted(words) if reordered else words), len(groups))
        items.add(sentence, cells[1] if verbatim else cells[1].strip(), group)
        splits.append(SPLIT_NAMES[cells[0]])
    if not items.labels:
        raise DataError(f"{file} is empty; expected lines of split, label, sentence.")
    return replace(items, splits=splits)


def read_sentences(file: Path) -> list[str]:
    """Read the different sentences of a text file with one sentence per line, normalised."""
    return list(dict.fromkeys(filter(None, (normalise(line) for _, line in text_lines(file, sentences=True)))))


def read_texts(files: Sequence[Path], langs: Sequence[str]) -> dict[str, Text]:
    """Read the sentences of each language in all files: translations (en-fr.corpus.tsv), and text of one language.

    Parallel corpora repeat sentences with other translations, and near-copies share a translation, so all sentences
    that are connected by translations are one group. Raises DataError, with file and line, for an invalid line,
    UsageError for a file whose language is unclear.
    """
    parents: dict[tuple[str, str], tuple[str, str]] = {}  # (language, sentence) -> another node of its group

    def head(node: tuple[str, str]) -> tuple[str, str]:
        parents.setdefault(node, node)
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    for file in files:
        if pair := pair_of(file):
            for left, right in read_pairs(file, pair, Skipped(), strict=True):
                parents[head((pair[0], left))] = head((pair[1], right))
            continue
        lang = langs[0] if len(langs) == 1 else _stem(file)
        if lang not in langs:
            raise UsageError(f"{file}: its language is unclear; name it en.txt, or en-fr.tsv for translations.")
        for sentence in read_sentences(file):
            head((lang, sentence))
    texts = {lang: Text([], []) for lang in langs}
    numbers: dict[tuple[str, str], int] = {}  # head of a group -> index of the group
    for node in list(parents):
        group = numbers.setdefault(head(node), len(numbers))
        lang, sentence = node
        if lang in texts:
            texts[lang].sentences.append(sentence)
            texts[lang].groups.append(group)
    return texts


class Provenance(NamedTuple):
    """The origin of a corpus, the licence that its publisher states, and known artefacts."""

    about: str
    licence: str
    artefacts: tuple[str, ...] = ()


_ROWS = Path(__file__).with_name("corpora.tsv").read_text("utf-8").splitlines()[1:]
# a part of the names of a corpus's files, or "senteval", "treebank" or "unknown" -> provenance
CORPORA = {
    name: Provenance(about, licence, tuple(filter(None, artefacts.split(" | "))))
    for name, about, licence, artefacts in (row.split("\t") for row in _ROWS)
}


def provenance_of(file: Path, kind: str) -> Provenance:
    """Find the provenance of a file: by a part of its name, else by the two folders above it, else by `kind`."""
    for name in (*file.name.split("."), *(folder.name for folder in file.absolute().parents[:2])):
        if name in CORPORA:
            return CORPORA[name]
    senteval, treebank = kind == LABELLED and ".txt" in file.suffixes, kind == "conllu" and "-ud-" in file.name
    return CORPORA["senteval" if senteval else "treebank" if treebank else "unknown"]
