"""Read STS files in their usual layouts as `StsSet`s; names of files and folders tell the layout.

    SemEval's own   STS.input.NAME.txt and STS.gs.NAME.txt, in the folders that the archives unpack to
    SentEval's      STS/STS12-en-test/ with the same files; STS/STSBenchmark/sts-dev.csv; SICK/SICK_test_annotated.txt
    plain           2012/NAME.tsv, stsb/dev.tsv, stsb/fr/dev.tsv, sick/test.tsv, sts17/en-es.tsv: gold and two sentences

Each file may be compressed, its name then ending in .gz, .xz or .zst too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bgt_core.data.columns import split_langs
from bgt_core.data.textfile import uncompressed
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.sts.parse import GOLD_FIRST, lines, read_semeval, read_tsv
from bgt_core.evaluation.sts.score import StsSet

NAMES = "2012-2016, stsb-dev, stsb-dev-fr, sick, sick-trial, sts17, sts17-en-es"  # as users type them
DEPTH = 4  # maximum depth of a file below the given folder
# folders of archives whose names do not contain the year
UNPACKED = {"test-gold": "2012", "test-gs": "2013", "test_evaluation_task2a": "2015"}
SICK = {"train": "train", "trial": "trial", "test": "test_annotated"}
TRACKS = {  # SemEval-2017: languages of the two columns in the files, which their names don't always tell
    "track1.ar-ar": ("ar", "ar"),
    "track2.ar-en": ("en", "ar"),
    "track3.es-es": ("es", "es"),
    "track4a.es-en": ("es", "en"),
    "track4b.es-en": ("es", "en"),
    "track5.en-en": ("en", "en"),
    "track6.tr-en": ("en", "tr"),
}

# By name below the given folder, that folder's own name first, without the suffix of compression:
# "data/sts/2012/OnWN.tsv"
Files = dict[str, Path]


def read_sets(root: Path, names: Sequence[str], *, lang: str = "en", without: Sequence[str] = ()) -> list[StsSet]:
    """Read the sets of these names, each once, in the order given.

    A name is a SemEval year, "stsb-SPLIT", "stsb-SPLIT-LANG", "sick", "sick-SPLIT", "sts17" or "sts17-LANG-LANG".
    `lang` is the language of the SemEval years, in case they are translated. `without` are years whose pairs are left
    out of STS Benchmark, which consists of pairs of SemEval 2012-2017. Raises UsageError for an unknown name, NotFound
    for an absent set, DataError for a set that exists twice and for bad lines, by file and number.
    """
    if not root.is_dir():
        raise NotFound(f"{root}: no such folder.")
    if wrong := [year for year in without if not re.fullmatch(r"201\d", year)]:
        raise UsageError(f"'{wrong[0]}' is not a year of STS Benchmark; give years as in 2016,2017.")
    files = dict(walk(root))
    sets: list[StsSet] = []
    for name in names:
        match split_langs(name):
            case [year] if re.fullmatch(r"201[2-6]", year):
                sets += read_year(root, files, year, lang)
            case ["stsb", "train" | "dev" | "test" as split, *translated] if len(translated) < 2:
                sets.append(read_stsb(root, files, split, translated[0] if translated else "en", without))
            case ["sick"]:
                sets.append(read_sick(root, files, "test"))
            case ["sick", "train" | "trial" | "test" as split]:
                sets.append(read_sick(root, files, split))
            case ["sts17", *pair] if len(pair) in (0, 2):
                sets += read_sts17(root, files, pair)
            case _:
                raise UsageError(f"'{name}' is not an STS set; expected names as in {NAMES}.")
    return list({(data.year, data.name): data for data in sets}.values())


def walk(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, path) of every file down to `DEPTH`, without hidden ones, in the order of their names."""
    top = root.resolve()
    for folder, below, names in os.walk(top, followlinks=True):
        relative = Path(folder).relative_to(top.parent)
        below[:] = sorted(name for name in below if name[0] != "." and len(relative.parts) <= DEPTH)
        for name in sorted(names):
            if name[0] != ".":
                yield (relative / uncompressed(name)).as_posix(), Path(folder, name)


def read_year(root: Path, files: Files, year: str, lang: str = "en") -> list[StsSet]:
    """The test sets of one SemEval year, by name."""
    years = year_files(files)
    if year not in years:
        has = f"has {', '.join(sorted(years))}" if years else "has no STS year"
        raise NotFound(
            f"{root}: no STS files of {year}; it {has}. Expected {year}/NAME.tsv, or STS.input.NAME.txt and "
            "STS.gs.NAME.txt in the folders of SemEval or SentEval.",
        )
    paths = years[year]
    only({path.parent for path in paths}, f"STS {year}")
    sets: list[StsSet] = []
    for path in paths:
        file = uncompressed(path.name)
        name = re.sub(r"^STS\d*\.input\.|\.(txt|tsv)$", "", file).removeprefix("surprise.")  # OnWN, SMTnews
        if name in (data.name for data in sets):
            raise DataError(f"{path}: {year} {name} is in this folder under another name too; remove one of the two.")
        plain = file.endswith(".tsv")
        langs = (lang, lang)
        sets.append(read_tsv(path, year, name, langs) if plain else read_semeval(path, year, name, langs))
    return sorted(sets, key=lambda data: data.name)


def year_files(files: Files) -> dict[str, list[Path]]:
    """The files of sentences of each SemEval year, 2012-2016."""
    years: dict[str, list[Path]] = {}
    for name, path in files.items():
        *folders, file = name.split("/")
        if re.fullmatch(r"STS\d*\.input\.(?!ALL\.)(?!track).+\.txt", file):
            year = year_of(folders)
        elif plain := re.search(r"(?:^|/)(201[2-6])/[^/]+\.tsv$", name):
            year = plain[1]
        else:
            continue
        if year:
            years.setdefault(year, []).append(path)
    return years


def year_of(folders: Sequence[str]) -> str | None:
    """The SemEval year of the innermost folder that has one; None for training data, or without such a folder."""
    for name in reversed(folders):
        if re.search("train|trial", name, re.IGNORECASE):
            return None
        if stated := re.search(r"(?<!\d)201([2-6])(?!\d)|^STS1([2-6])(?!\d)", name, re.IGNORECASE):
            return f"201{stated[1] or stated[2]}"
        if name in UNPACKED:
            return UNPACKED[name]
    return None


def read_stsb(root: Path, files: Files, split: str, lang: str = "en", without: Sequence[str] = ()) -> StsSet:
    """A split of STS Benchmark or of a translation of it, without the pairs of these years."""
    below, name = ("", split) if lang == "en" else (f"/{lang}", f"{split}-{lang}")
    plain = rf"(?:^|/)stsb[^/]*{re.escape(below)}/{split}\.tsv"
    path = find(root, files, plain if below else rf"{plain}|(?:^|/)sts-{split}\.csv", f"stsb{below}/{split}.tsv")
    official = uncompressed(path.name).endswith(".csv")  # genre, file, year, number, gold, sentence, sentence
    columns, origin = ((4, 5, 6), 2) if official else (GOLD_FIRST, 3)

    def keep(fields: list[str]) -> bool:
        if len(fields) <= origin:
            raise DataError(f"{path}: column {origin + 1} has no years, so {', '.join(without)} can't be left out.")
        return not fields[origin].split("/")[-1].startswith(tuple(without))  # "main-news/headlines/2016", "2012test"

    if without:
        name += f" without {', '.join(without)}"
    return read_tsv(path, "stsb", name, (lang, lang), columns, keep if without else None)


def read_sick(root: Path, files: Files, split: str) -> StsSet:
    """Relatedness, 1-5, of a split of SICK."""
    official = rf"(?:^|/)SICK(?:_{SICK[split]})?\.txt"
    path = find(root, files, rf"(?:^|/)(?i:sick)[^/]*/{split}\.tsv|{official}", f"sick/{split}.tsv")
    if uncompressed(path.name).endswith(".tsv"):
        return read_tsv(path, "sick", split, ("en", "en"))
    head = next((fields for _, fields in lines(path)), [])
    names = ["relatedness_score", "sentence_A", "sentence_B"]
    if not set(names) <= set(head):
        raise DataError(f"{path}:1: expected a head with {', '.join(names)}; found {', '.join(head)[:80]}.")
    columns = tuple(map(head.index, names))
    part = head.index("SemEval_set") if "SemEval_set" in head else None  # SICK.txt holds all three splits

    def keep(fields: list[str]) -> bool:
        return fields != head and (part is None or fields[part:][:1] == [split.upper()])

    return read_tsv(path, "sick", split, ("en", "en"), columns, keep)


def read_sts17(root: Path, files: Files, pair: Sequence[str] = ()) -> list[StsSet]:
    """SemEval-2017's tracks in the folder, by name, English left; track 4b, of translated news, is "en-es news"."""
    tracks: dict[str, list[tuple[Path, tuple[str, str]]]] = {}
    for name, path in files.items():
        if track := re.fullmatch(r"(?:.*/)?STS\.input\.(track\w+\...-..)\.txt", name):
            langs = TRACKS.get(track[1])
        elif plain := re.search(r"(?:^|/)sts(?:20)?17[^/]*/([a-z]{2})-([a-z]{2})\.tsv$", name, re.IGNORECASE):
            langs = plain[1], plain[2]
        else:
            continue
        if langs and (not pair or {*langs} == {*pair}):
            label = "-".join(sorted(langs, key=lambda lang: (lang != "en", lang)))
            tracks.setdefault(label + (" news" if "track4b" in path.name else ""), []).append((path, langs))
    if not tracks:
        wanted = "-".join(pair) or "LANG-LANG"
        raise NotFound(f"{root}: no sts17/{wanted}.tsv, and no STS.input.trackN.{wanted}.txt of SemEval-2017.")
    sets = []
    for label, members in sorted(tracks.items()):
        path, langs = only([path for path, _ in members], f"sts17 {label}"), members[0][1]
        file = uncompressed(path.name)
        if file.endswith(".tsv"):
            data = read_tsv(path, "sts17", label, langs)
        else:  # gold is in a separate folder
            gold = [other for name, other in files.items() if name.split("/")[-1] == file.replace(".input.", ".gs.")]
            data = read_semeval(path, "sts17", label, langs, gold[0] if gold else None)
        swap = data.right_lang == "en"
        sets.append(StsSet(data.year, label, data.gold, data.right, data.left, "en", data.left_lang) if swap else data)
    return sets


def find(root: Path, files: Files, pattern: str, expected: str) -> Path:
    """The one file whose name matches this pattern."""
    paths = [path for name, path in files.items() if re.search(f"(?:{pattern})$", name)]
    if not paths:
        raise NotFound(f"{root}: found neither {expected} nor the official file.")
    return only(paths, expected)


def only(paths: Iterable[Path], what: str) -> Path:
    """Return the only one of them; DataError if there are several."""
    first, *others = sorted(paths)
    if others:
        raise DataError(f"{what} exists twice: {first} and {others[0]}. Give a folder with one of them.")
    return first
