"""Find and read the files of a task: labelled sentences, trees, parses or text, with their provenance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bgt_core.data.columns import split_langs
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import normalise
from bgt_core.data.textfile import column_hint, lines, text_lines, uncompressed
from bgt_core.data.trees import detokenise
from bgt_core.errors import DataError, NotFound, UsageError
from probes.task import Items, ProbeTask, needs, split_words

LABELLED = "labelled"
TREES = (".mrg", ".ptb", ".trees")
SPLIT_NAMES = {"tr": "train", "va": "dev", "te": "test"}
_LANG = re.compile(r"[a-z]{2}(-[A-Z\d]\w+)*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class TaskSource(NamedTuple):
    """The files that a task's items are made from."""

    kind: str  # "labelled", or one of the kinds of `ProbeTask.builds`
    files: tuple[Path, ...]
    passed_over: tuple[str, ...] = ()  # one message per file skipped because it does not have two columns


class Text(NamedTuple):
    """N distinct normalised sentences; a group has the translations of a sentence, direct or through others."""

    sentences: list[str]
    groups: list[int]


def find_source(data: Path, task: ProbeTask, lang: str) -> TaskSource:
    """Find the best source for a task in a language in the folder `data` and its subfolders, or use `data`, a file.

    Labelled sentences come first: SentEval's subj_number.txt before subj_number.tsv, in a folder with the language's
    name; other folders are English. Then trees (fr/*.mrg, fr.mrg), CoNLL-U (fr_*.conllu, fr/*.conllu, fr.conllu) and
    text (fr.txt, or en-fr.*.tsv, whose name gives its columns), if the task can be labelled from them. All names may
    end in .gz, .xz or .zst. Similarity sets may be named like translations, such as STS's en-ar.tsv, so a TSV without
    exactly two columns is skipped. Raises NotFound if there is no source, UsageError if the task is not defined for the
    language or can't be labelled from the file.
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
        if kind == "texts":  # only translations if possible: their topics are the same in every language
            pairs = [file for file in candidates if pair_of(file)]
            candidates = next((files for files in (pairs, candidates) if _cover(files, langs)), [])
        if candidates:
            return TaskSource(kind, tuple(candidates), tuple(passed_over))
    raise NotFound(
        f"No '{lang}' data for task '{task.name}' in {data}: it needs {needs(task, lang)}"
        f"{''.join(f' (passed over {line})' for line in passed_over)}."
        f"{' Get it with bgt data download senteval-probing.' if task.file and lang == 'en' else ''}",
    )


def _kind_of_file(file: Path, task: ProbeTask) -> str:
    """Determine the kind of a single file by its suffix or its first line."""
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
    """Return the name up to its first dot."""
    return file.name.partition(".")[0]


def _folder_is(file: Path, lang: str) -> bool:
    """Test whether a labelled file is in a folder of this language; folders without a language's name are English."""
    folder = file.absolute().parent.name
    return folder == lang or (lang == "en" and not _LANG.fullmatch(folder))


def _is_source(file: Path, kind: str, langs: Sequence[str]) -> bool:
    """Test whether a file's name is that of this kind of source for `langs`."""
    name, folder = uncompressed(file.name), file.absolute().parent.name
    if kind in ("conllu", "trees"):
        start = re.split("[_.]", name)[0]
        return name.endswith(".conllu" if kind == "conllu" else TREES) and langs[0] in (start, folder)
    if pair := pair_of(file):
        return set(pair) <= set(langs) if kind == "texts" else langs[0] in pair
    return any(name == f"{lang}.txt" for lang in langs)


def _cover(files: Sequence[Path], langs: Sequence[str]) -> bool:
    """Test whether the files contain text of every language."""
    return {lang for file in files for lang in (pair_of(file) or (_stem(file),))} >= set(langs)


def pair_of(file: Path) -> tuple[str, str] | None:
    """Return the languages of a TSV of translations, from its name: en-fr.corpus.tsv.xz -> (en, fr); else None."""
    name, *rest = file.name.split(".")
    langs = split_langs(name)
    primary = [lang.partition("-")[0] for lang in langs]
    return (langs[0], langs[1]) if "tsv" in rest and list(map(len, primary)) == [2, 2] else None


def read_labelled(file: Path, lang: str, reordered: bool = False, verbatim: bool = False) -> Items:
    """Read all rows of a file in the format of SentEval's data/probing: split, label, any text and tokens, with tabs.

    Rows keep their order and labels; tokens are joined into a text. Rows with the same words in the same order form one
    group; with `reordered`, the order is ignored. Quotes that a CSV writer added are removed. With
    `verbatim`, quotes stay, and tokens are joined by single spaces, as in SentEval. The file may end in .gz, .xz or
    .zst. Raises DataError, with file and line, for a bad line.
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
    """Read the normalised, distinct sentences of a text file with one sentence per line.

    The file may end in .gz, .xz or .zst. Raises NotFound if it is absent, DataError, with the line, if it is damaged,
    not UTF-8, or a TSV.
    """
    sentences = []
    with_tab = "\t" in next(text_lines(file), (1, ""))[1]  # the error below has more detail
    for number, line in text_lines(file, sentences=not with_tab):
        if "\t" in line:
            raise DataError(
                f"{file}:{number}: {line.count(chr(9)) + 1} columns; give one sentence per line, as from: cut -f1 FILE."
            )
        sentences.append(normalise(line))
    return list(dict.fromkeys(filter(None, sentences)))


def read_texts(files: Sequence[Path], langs: Sequence[str]) -> dict[str, Text]:
    """Read the sentences of each language in all files.

    A file named like en-fr.corpus.tsv has translations, with columns in the order of its name; other files have text of
    one language, one sentence per line. Parallel corpora repeat sentences with other translations, and near-copies
    share a translation, so all sentences that are connected by translations are one group. Raises DataError, with file
    and line, for a bad line, UsageError for a file whose language is unclear.
    """
    parents: dict[tuple[str, str], tuple[str, str]] = {}  # (language, sentence) -> another of its group (union-find)

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
    numbers: dict[tuple[str, str], int] = {}  # head of a group -> its number
    for node in list(parents):
        group = numbers.setdefault(head(node), len(numbers))
        lang, sentence = node
        if lang in texts:
            texts[lang].sentences.append(sentence)
            texts[lang].groups.append(group)
    return texts


class Provenance(NamedTuple):
    """The source of sentences, the licence that the source states, and known artefacts."""

    about: str
    licence: str
    artefacts: tuple[str, ...] = ()


_ROWS = Path(__file__).with_name("corpora.tsv").read_text("utf-8").splitlines()[1:]
# by a part of the corpus's file names, or "senteval", "treebank" or "unknown"
CORPORA = {
    name: Provenance(about, licence, tuple(filter(None, artefacts.split(" | "))))
    for name, about, licence, artefacts in (row.split("\t") for row in _ROWS)
}


def provenance_of(file: Path, kind: str) -> Provenance:
    """Find the provenance of a file by a part of its name, the names of its two folders, or its kind of source."""
    for name in (*file.name.split("."), *(folder.name for folder in file.absolute().parents[:2])):
        if name in CORPORA:
            return CORPORA[name]
    senteval, treebank = kind == LABELLED and ".txt" in file.suffixes, kind == "conllu" and "-ud-" in file.name
    return CORPORA["senteval" if senteval else "treebank" if treebank else "unknown"]
