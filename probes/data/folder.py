"""Find the files of a folder for a task: labelled sentences, trees, parses or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bgt_core.data.columns import split_langs
from bgt_core.data.textfile import lines, uncompressed
from bgt_core.errors import NotFound, UsageError
from probes.data.labelled import SPLIT_NAMES
from probes.data.texts import pair_of
from probes.task import ProbeTask, needs

LABELLED = "labelled"
TREES = (".mrg", ".ptb", ".trees")
_LANG = re.compile(r"[a-z]{2}(-[A-Z\d]\w+)*")


@dataclass(frozen=True)
class TaskSource:
    """The files that a task's items are made from."""

    kind: str  # "labelled", or one of the kinds of `ProbeTask.builds`
    files: tuple[Path, ...]
    passed_over: tuple[str, ...] = ()  # files named like text of the language, with other content


def find_source(data: Path, task: ProbeTask, lang: str) -> TaskSource:
    """Find the best source for a task in a language, in a folder and all below it; or use `data`, a file.

    Labelled sentences come first: SentEval's subj_number.txt before other .tsv files, in a folder named by the
    language; other folders hold English. Then trees (fr/*.mrg, fr.mrg), CoNLL-U (fr_*.conllu, fr/*.conllu, fr.conllu)
    and text (fr.txt, and en-fr.*.tsv, whose name gives its columns), if the task can be labelled from them. All may end
    in .gz, .xz or .zst. Similarity sets may be named like translations, such as STS's en-ar.tsv, so a TSV without
    exactly two columns is skipped. Raises NotFound without a source, UsageError for a language that the task does not
    have, and for an unsuitable file.
    """
    task.check(lang)
    langs = split_langs(lang)
    if data.is_file():
        return _source_of_file(data, task)
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
        if kind == "texts":  # translations only, if they suffice: they have the same topics in every language
            pairs = [file for file in candidates if pair_of(file)]
            candidates = next((files for files in (pairs, candidates) if _cover(files, langs)), [])
        if candidates:
            return TaskSource(kind, tuple(candidates), tuple(passed_over))
    raise NotFound(
        f"No '{lang}' data for task '{task.name}' in {data}: it needs {needs(task, lang)}"
        f"{''.join(f' (passed over {line})' for line in passed_over)}."
        f"{' Get it with bgt-probe --download.' if task.file and lang == 'en' else ''}",
    )


def _source_of_file(file: Path, task: ProbeTask) -> TaskSource:
    """Classify a file given by name: its suffix, or its first line, tells its kind."""
    name = uncompressed(file.name)
    kind = "conllu" if name.endswith(".conllu") else "trees" if name.endswith(TREES) else ""
    if not kind:
        first = _first_cells(file)
        kind = LABELLED if len(first) > 2 and first[0].decode(errors="replace") in SPLIT_NAMES else "text"
    if kind == "text" and "texts" in task.builds:
        kind = "texts"
    if kind != LABELLED and kind not in task.builds:
        raise UsageError(f"{file}: task '{task.name}' can't be labelled from this; it needs {needs(task)}.")
    return TaskSource(kind, (file,))


def _first_cells(file: Path) -> list[bytes]:
    """The cells of a file's first line."""
    return next(lines(file), b"").split(b"\t")


def _stem(file: Path) -> str:
    """The name up to its first dot."""
    return file.name.partition(".")[0]


def _folder_is(file: Path, lang: str) -> bool:
    """Whether the folder of a labelled file is of this language; a folder without a language's name holds English."""
    folder = file.absolute().parent.name
    return folder == lang or (lang == "en" and not _LANG.fullmatch(folder))


def _is_source(file: Path, kind: str, langs: Sequence[str]) -> bool:
    """Whether a file, by its name, is this kind of source for the language, or for several of `langs`."""
    name, folder = uncompressed(file.name), file.absolute().parent.name
    if kind in ("conllu", "trees"):
        start = re.split("[_.]", name)[0]
        return name.endswith(".conllu" if kind == "conllu" else TREES) and langs[0] in (start, folder)
    pair = pair_of(file)
    if pair:
        return set(pair) <= set(langs) if kind == "texts" else langs[0] in pair
    return any(name == f"{lang}.txt" for lang in langs)


def _cover(files: Sequence[Path], langs: Sequence[str]) -> bool:
    """Whether the files hold text of every language."""
    return {lang for file in files for lang in (pair_of(file) or (_stem(file),))} >= set(langs)
