"""What a folder has for a task: labelled sentences, trees, parses or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bgt_core.data.parallel import SUFFIXES, lines
from bgt_core.errors import NotFound, UsageError
from probes.data.labelled import SPLIT_NAMES
from probes.data.texts import pair_of
from probes.task import ProbeTask, needs

LABELLED = "labelled"
TREES = (".mrg", ".ptb", ".trees")
_CODE = re.compile(r"[a-z]{2}")


@dataclass(frozen=True)
class Source:
    """Files that a task's items are made from."""

    kind: str  # "labelled", or one of the kinds of `ProbeTask.builds`
    files: tuple[Path, ...]
    passed_over: tuple[str, ...] = ()  # files that are called like text of the language and hold something else


def find_source(where: Path, task: ProbeTask, lang: str) -> Source:
    """The best source that a folder, searched with all below it, has for a task in a language; or `where`, a file.

    Labelled sentences come first: SentEval's subj_number.txt before the .tsv of others, in a folder named by the
    language; other folders hold English. Then trees (fr/*.mrg, fr.mrg), CoNLL-U (fr_*.conllu, fr/*.conllu, fr.conllu)
    and text (fr.txt, and en-fr.*.tsv, whose columns its name tells), where the task can be labelled from them.
    All may end in .gz, .xz or .zst. Sets for similarity are called like translations too, as STS's en-ar.tsv: what has
    not two columns is passed over. Raises BgtError with exit code 3 where there is nothing.
    """
    task.check(lang)
    langs = lang.split("-")
    if len(langs) != len(set(langs)) or (len(langs) > 1) != ("texts" in task.builds):
        many = "two or more languages, as in en-fr" if "texts" in task.builds else "one language"
        raise UsageError(f"Task '{task.name}' wants {many}, not '{lang}'.")
    if where.is_file():
        return _named(where, task)
    if not where.is_dir():
        raise NotFound(f"{where}: there is no such file or folder.")
    files = sorted(path for path in where.rglob("*") if path.is_file())
    labelled = [file for file in files if task.file and _bare(file).split(".")[0] == task.file and _of(file, lang)]
    for end in (".txt", ".tsv"):
        found = [file for file in labelled if _bare(file).endswith(end)]
        if found:
            return Source(LABELLED, (found[0],))
    passed_over: list[str] = []
    for kind in task.builds:
        found = [file for file in files if _holds(file, kind, langs)]
        wide = {file: count for file in found if pair_of(file) and (count := len(_first(file))) != 2}
        passed_over += [
            f"{file.relative_to(where)}: {count} columns, translations have 2" for file, count in wide.items()
        ]
        found = [file for file in found if file not in wide]
        if kind == "texts":  # translations alone where they suffice: the same topics in every language
            pairs = [file for file in found if pair_of(file)]
            found = next((files for files in (pairs, found) if _cover(files, langs)), [])
        if found:
            return Source(kind, tuple(found), tuple(passed_over))
    raise NotFound(
        f"No '{lang}' data for task '{task.name}' in {where}: it needs {needs(task, lang)}"
        f"{''.join(f' (passed over {line})' for line in passed_over)}."
        f"{' Get it by --download.' if task.file and lang == 'en' else ''}",
    )


def _named(file: Path, task: ProbeTask) -> Source:
    """A file given by name: its ending, or its first line, tells what it holds."""
    bare = _bare(file)
    kind = "conllu" if bare.endswith(".conllu") else "trees" if bare.endswith(TREES) else ""
    if not kind:
        first = _first(file)
        kind = LABELLED if len(first) > 2 and first[0].decode(errors="replace") in SPLIT_NAMES else "text"
    if kind == "text" and "texts" in task.builds:
        kind = "texts"
    if kind != LABELLED and kind not in task.builds:
        raise UsageError(f"{file}: task '{task.name}' can't be labelled from this; it needs {needs(task)}.")
    return Source(kind, (file,))


def _first(file: Path) -> list[bytes]:
    """The cells of a file's first line."""
    return next(islice(lines(file), 1), b"").split(b"\t")


def _bare(file: Path) -> str:
    """The name without the ending of its compression."""
    return file.name.removesuffix(file.suffix) if file.suffix in SUFFIXES[1:] else file.name


def _of(file: Path, lang: str) -> bool:
    """Whether the folder of a labelled file says that it is of this language."""
    folder = file.absolute().parent.name
    return folder == lang or (lang == "en" and not _CODE.fullmatch(folder))


def _holds(file: Path, kind: str, langs: Sequence[str]) -> bool:
    """Whether a file is one of this kind of source in a language, or in two of them."""
    bare, folder = _bare(file), file.absolute().parent.name
    if kind in ("conllu", "trees"):
        start = re.split("[_.]", bare)[0]
        return bare.endswith(".conllu" if kind == "conllu" else TREES) and langs[0] in (start, folder)
    pair = pair_of(file)
    if pair:
        return set(pair) <= set(langs) if kind == "texts" else langs[0] in pair
    return any(bare == f"{lang}.txt" for lang in langs)


def _cover(files: Sequence[Path], langs: Sequence[str]) -> bool:
    """Whether the files hold text of every language."""
    found = {lang for file in files for lang in (pair_of(file) or (file.name.partition(".")[0],))}
    return found >= set(langs)
