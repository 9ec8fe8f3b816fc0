"""Sets of pairs with gold scores, from STS files in their usual layouts; names of files and folders tell the layout.

    SemEval's own   STS.input.NAME.txt and STS.gs.NAME.txt, in the folders that the archives unpack to
    SentEval's      STS/STS12-en-test/ with the same files; STS/STSBenchmark/sts-dev.csv; SICK/SICK_test_annotated.txt
    plain           2012/NAME.tsv, stsb/dev.tsv, stsb/fr/dev.tsv, sick/test.tsv, sts17/en-es.tsv: gold and two sentences

Each file may be compressed, its name then ending in .gz, .xz or .zst too.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bgt_core.data.columns import split_langs
from bgt_core.data.textfile import SUFFIXES, column_hint, no_number, number, text_lines, uncompressed
from bgt_core.errors import BgtError, DataError, NotFound, UsageError

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


@dataclass(frozen=True, eq=False)
class StsSet:
    """One data set: N sentence pairs and their gold similarity. Raises DataError if their correlation is undefined."""

    year: str  # "2012"; other benchmarks have their name: "stsb", "sick", "sts17"
    name: str
    gold: np.ndarray  # (N,) float64, 0-5, SICK 1-5
    left: Sequence[str]
    right: Sequence[str]
    left_lang: str = "en"
    right_lang: str = "en"

    def __post_init__(self) -> None:
        if not len(self.gold) == len(self.left) == len(self.right):
            raise DataError(
                f"{self}: {len(self.gold)} gold scores, {len(self.left)} left and {len(self.right)} right sentences; "
                "expected one of each per pair, in the same order."
            )
        if len(self.gold) < 2:
            raise DataError(f"{self}: {len(self.gold)} pairs; a correlation needs at least 2.")
        if not (finite := np.isfinite(self.gold)).all():
            row = int(finite.argmin())
            raise DataError(f"{self}: the gold score of pair {row + 1} is {self.gold[row]}; expected a number.")
        if np.ptp(self.gold) == 0:
            raise DataError(f"{self}: every gold score is {self.gold[0]}; a correlation needs different ones.")

    def __str__(self) -> str:
        return f"{self.year} {self.name}"


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
    only({path.parent for path in years[year]}, f"STS {year}")
    sets: dict[str, StsSet] = {}
    for path in years[year]:
        file = uncompressed(path.name)
        name = re.sub(r"^STS\d*\.input\.|\.(txt|tsv)$", "", file).removeprefix("surprise.")  # OnWN, SMTnews
        if name in sets:
            raise DataError(f"{path}: {year} {name} is in this folder under another name too; remove one of the two.")
        sets[name] = (read_tsv if file.endswith(".tsv") else read_semeval)(path, year, name, (lang, lang))
    return [sets[name] for name in sorted(sets)]


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
    official = rf"(?:^|/)SICK_{SICK[split]}\.txt"
    path = find(root, files, rf"(?:^|/)(?i:sick)[^/]*/{split}\.tsv|{official}", f"sick/{split}.tsv")
    plain = uncompressed(path.name).endswith(".tsv")  # else pair_ID, sentence_A, sentence_B, relatedness_score, ...
    columns = GOLD_FIRST if plain else (3, 1, 2)
    return read_tsv(path, "sick", split, columns=columns, keep=lambda fields: plain or fields[0] != "pair_ID")


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
            gold = (other for name, other in files.items() if name.split("/")[-1] == file.replace(".input.", ".gs."))
            data = read_semeval(path, "sts17", label, langs, next(gold, None))
        if data.right_lang == "en":
            data = replace(data, left=data.right, right=data.left, left_lang="en", right_lang=data.left_lang)
        sets.append(data)
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


# Parse the lines of STS files (plain, .gz, .xz, .zst). A line separator inside a sentence, such as U+2028, does not end
# a line.

GOLD_FIRST = (0, 1, 2)  # columns of gold, left, right


def read_tsv(
    path: Path,
    year: str,
    name: str,
    langs: tuple[str, str] = ("en", "en"),
    columns: Sequence[int] = GOLD_FIRST,
    keep: Callable[[list[str]], bool] | None = None,
) -> StsSet:
    """Read a file of tab-separated columns, with the positions of gold, left and right; other columns are ignored."""
    rows: list[tuple[float, str, str]] = []
    for place, line in text_lines(path):
        fields = line.split("\t")
        if keep and not keep(fields):
            continue
        if len(fields) <= max(columns):
            numbers = ", ".join(str(column + 1) for column in columns)
            expected = f"expected gold <tab> sentence <tab> sentence (columns {numbers})"
            hint = column_hint(line, len(columns))
            raise DataError(f"{path}:{place}: {expected}, found {line[:60]!r}{hint}.")
        score, left, right = (fields[column] for column in columns)
        rows.append((gold_score(path, place, score), left, right))
    return named(path, year, name, rows, langs)


def read_semeval(path: Path, year: str, name: str, langs: tuple[str, str], gold: Path | None = None) -> StsSet:
    """Read STS.input.NAME.txt, two sentences per line, and STS.gs.NAME.txt, one score per line; drop pairs without a
    score."""
    if gold is None:
        gold_name = uncompressed(path.name.replace(".input.", ".gs.", 1))
        gold = next((other for end in SUFFIXES if (other := path.with_name(gold_name + end)).exists()), None)
        if gold is None:
            raise NotFound(f"{path}: its gold scores, {gold_name}, are missing.")
    pairs, scores = list(text_lines(path)), list(text_lines(gold))
    if len(pairs) != len(scores):
        raise DataError(
            f"{gold}: {len(scores)} lines of gold for the {len(pairs)} pairs of {path.name}; "
            "line N must score pair N, empty where it has no score."
        )
    rows = []
    for (place, line), (_, given) in zip(pairs, scores, strict=True):
        score, (left, *others) = given.split("\t")[0], line.split("\t")
        if not score.strip():
            continue
        if not others:
            hint = column_hint(left, 2)
            raise DataError(f"{path}:{place}: expected sentence <tab> sentence, found {left[:60]!r}{hint}.")
        rows.append((gold_score(gold, place, score), left, others[0]))
    return named(path, year, name, rows, langs)


def named(path: Path, year: str, name: str, rows: Sequence[tuple[float, str, str]], langs: tuple[str, str]) -> StsSet:
    """Make the set of rows of gold, left and right; its errors name the file."""
    gold = np.array([row[0] for row in rows], dtype=np.float64)
    try:
        return StsSet(year, name, gold, [row[1] for row in rows], [row[2] for row in rows], *langs)
    except BgtError as error:
        raise type(error)(f"{path}: {error}") from None


def gold_score(path: Path, line: int, text: str) -> float:
    """Read a score; a DataError names the file and the line."""
    if math.isnan(value := number(text)):
        header = "; remove the line if it is a header" if line == 1 and text.strip().isalpha() else ""
        raise DataError(f"{path}:{line}: the gold score {no_number(text)}{header}.")
    return value


# Known facts of the published STS sets: their numbers of pairs, and deviations of the files at hand.

PAIRS = {  # with a gold score
    "2012": {"MSRpar": 750, "MSRvid": 750, "OnWN": 750, "SMTeuroparl": 459, "SMTnews": 399},
    "2013": {"FNWN": 189, "OnWN": 561, "SMT": 750, "headlines": 750},
    "2014": {"OnWN": 750, "deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "tweet-news": 750},
    "2015": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "2016": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
    "stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "sick": {"train": 4500, "trial": 500, "test": 4927},
    "sts17": dict.fromkeys(("ar-ar", "en-ar", "en-en", "en-es", "en-es news", "en-tr", "es-es"), 250),
}


def dataset_warnings(sets: Sequence[StsSet]) -> list[str]:
    """Explain why scores on these sets may differ from published ones, or be less certain; one sentence each.

    Repeated pairs within a set count as often as they occur, as in all published scores: some published sets have them.
    """
    warnings = []
    for data in sets:
        published = PAIRS.get(data.year, {}).get(data.name)
        if published not in (None, len(data.gold)):
            warnings.append(f"{data} has {len(data.gold)} pairs, {published} as published.")
    for year in dict.fromkeys(data.year for data in sets if data.year.isdigit()):
        names = {data.name for data in sets if data.year == year}
        # 2013's SMT has its own licence, and is mentioned with the scores
        missing = PAIRS.get(year, {}).keys() - names - {"SMT"}
        if missing:
            warnings.append(f"{year} is without {', '.join(sorted(missing))}: its score is not the published one.")
    whole = [data for data in sets if data.year != "hard"]  # Hard STS is cut from other sets
    repeats = {str(data): len(data.left) - len({*zip(data.left, data.right, strict=True)}) for data in whole}
    if some := [f"{name} {count}" for name, count in repeats.items() if count]:
        warnings.append(f"Repeated pairs within a set, counted as often as they occur: {', '.join(some)}.")
    return warnings
