"""Read STS data sets (sentence pairs with gold scores) from files in one of these layouts.

    SemEval         STS.input.NAME.txt and STS.gs.NAME.txt, in the folders that the archives unpack to
    SentEval        STS/STS12-en-test/ with the same files; STS/STSBenchmark/sts-dev.csv; SICK/SICK_test_annotated.txt
    plain           2012/NAME.tsv, stsb/dev.tsv, stsb/fr/dev.tsv, sick/test.tsv, sts17/en-es.tsv: gold and two sentences

The names of files and folders determine the layout. Each file may be compressed (.gz, .xz, .zst).
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.data.columns import split_langs
from bgt_core.data.textfile import column_hint, no_number, number, text_lines, uncompressed
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.task import tsv_rows

NAMES = "2012-2016, stsb-dev, stsb-dev-fr, sick, sick-trial, sts17, sts17-en-es"  # examples for an error message
KNOWN = re.compile(r"201[2-6]|stsb-(train|dev|test)(-[^-]*)?|sick-(train|trial|test)|sts17(-[^-]+-[^-]+)?")
DEPTH = 4  # Maximum depth of a file below the given folder.
# Name of a folder in SemEval's archives -> its year, if the name does not contain the year.
UNPACKED = {"test-gold": "2012", "test-gs": "2013", "test_evaluation_task2a": "2015"}
ENGLISH_FIRST = ("track2.ar-en", "track6.tr-en")  # SemEval-2017: the first column is English despite the file's name


@dataclass(frozen=True, eq=False)
class StsSet:
    """An STS data set: N sentence pairs with gold scores. Raises DataError if no correlation can be computed."""

    year: str  # "2012"; for other benchmarks the name of the benchmark: "stsb", "sick", "sts17"
    name: str
    gold: np.ndarray  # (N,) float64, from 0 to 5; SICK from 1 to 5
    left: Sequence[str]
    right: Sequence[str]
    left_lang: str = "en"
    right_lang: str = "en"

    def __post_init__(self) -> None:
        if len(self.gold) < 2:
            raise DataError(f"{self}: {len(self.gold)} pairs; a correlation needs at least 2.")
        if not (finite := np.isfinite(self.gold)).all():
            row = int(finite.argmin())
            raise DataError(f"{self}: the gold score of pair {row + 1} is {self.gold[row]}; expected a number.")
        if np.ptp(self.gold) == 0:
            raise DataError(f"{self}: every gold score is {self.gold[0]}; a correlation needs 2 different scores.")

    def __str__(self) -> str:
        return f"{self.year} {self.name}"


class StsFile(NamedTuple):
    """The file of an STS data set, and the positions of its columns."""

    set: str  # the name with which users select it: "2012", "stsb-dev-fr", "sick-test", "sts17-en-es"
    year: str
    name: str
    path: Path
    langs: tuple[str, str] = ("en", "en")
    columns: Sequence[int] = (0, 1, 2)  # indices of the columns: gold score, left, right; unused if `gold` is set
    gold: Path | None = None  # the file of the gold scores, if they are in a separate file


def read_sets(root: Path, names: Sequence[str], *, lang: str = "en", without: Sequence[str] = ()) -> list[StsSet]:
    """Read the data sets with these names from a folder and its subfolders, each once, in the order of `names`.

    A name is a SemEval year, "stsb-SPLIT", "stsb-SPLIT-LANG", "sick", "sick-SPLIT", "sts17" or "sts17-LANG-LANG".
    `lang` is the language of the files of SemEval years, which may be translated. `without` lists years whose pairs are
    left out of STS Benchmark, which consists of pairs from SemEval 2012-2017. Raises UsageError for an unknown name,
    NotFound for a missing data set, and DataError if a data set exists twice or a line is invalid.
    """
    if not root.is_dir():
        raise NotFound(f"{root}: no such folder.")
    if wrong := [year for year in without if not re.fullmatch(r"201\d", year)]:
        raise UsageError(f"'{wrong[0]}' is not a year of STS Benchmark; give years from 2012 to 2017, as in 2016,2017.")
    files = sorted(sts_files(root, lang), key=lambda file: (file.set, file.name, file.path))
    chosen: dict[tuple[str, str], StsFile] = {}
    for name in names:
        wanted = "sick-test" if name == "sick" else "-".join(split_langs(name))
        if not KNOWN.fullmatch(wanted):
            raise UsageError(f"'{name}' is not an STS set; expected names as in {NAMES}.")
        if wanted.startswith("sts17-"):
            wanted = f"sts17-{english_first(wanted.split('-')[1:])}"
        members = [file for file in files if wanted in (file.set, file.year if file.year == "sts17" else "")]
        if not members:
            has = f"has {', '.join(dict.fromkeys(file.set for file in files)) or 'no STS files'}"
            raise NotFound(
                f"{root}: no files of {wanted}; it {has}. Expected 2012/NAME.tsv, stsb/dev.tsv, sick/test.tsv, "
                "sts17/en-es.tsv, or the files of SemEval or SentEval in their folders."
            )
        for file in members:
            other = chosen.setdefault((file.year, file.name), file)
            if other.path != file.path:
                raise DataError(
                    f"{file.year} {file.name} exists twice: as {other.path} and {file.path}. "
                    "Give a folder that contains only one of the two."
                )
    return [read_set(file, without) for file in chosen.values()]


def english_first(langs: Sequence[str]) -> str:
    """Return the name of the SemEval-2017 data for two languages, with English first: "en-es" for es and en."""
    return "-".join(sorted(langs, key=lambda lang: (lang != "en", lang)))


def sts_files(root: Path, lang: str = "en") -> Iterator[StsFile]:
    """Yield the files of STS data sets, at most `DEPTH` folders deep, without hidden files. `lang` is the language of
    the yearly SemEval sets."""
    files = dict(walk(root))
    for name, path in files.items():
        *folders, file = name.split("/")
        above, parent = ["", *folders][-2:]
        stem, suffix = os.path.splitext(file)
        gold = "/".join([*folders, file.replace(".input.", ".gs.", 1)])
        if suffix == ".tsv" and re.fullmatch(r"201[2-6]", parent):
            yield StsFile(parent, parent, stem.removeprefix("surprise."), path, (lang, lang))
        elif suffix == ".tsv" and parent.startswith("stsb"):
            yield StsFile(f"stsb-{stem}", "stsb", stem, path)
        elif suffix == ".tsv" and above.startswith("stsb"):
            yield StsFile(f"stsb-{stem}-{parent}", "stsb", f"{stem}-{parent}", path, (parent, parent))
        elif official := re.fullmatch(r"sts-(train|dev|test)\.csv", file):  # columns: genre, file, year, id, gold, a, b
            yield StsFile(f"stsb-{official[1]}", "stsb", official[1], path, columns=(4, 5, 6))
        elif suffix == ".tsv" and parent.lower().startswith("sick"):
            yield StsFile(f"sick-{stem}", "sick", stem, path)
        elif official := re.fullmatch(r"SICK_(train|trial|test)(?:_annotated)?\.txt", file):  # columns: id, a, b, gold
            yield StsFile(f"sick-{official[1]}", "sick", official[1], path, columns=(3, 1, 2))
        elif suffix == ".tsv" and re.match(r"sts(?:20)?17", parent, re.IGNORECASE) and re.fullmatch("..-..", stem):
            left, right = stem.split("-")
            label = english_first([left, right])
            yield StsFile(f"sts17-{label}", "sts17", label, path, (left, right))
        elif official := re.fullmatch(r"STS\.input\.(track\w+\.(..)-(..))\.txt", file):  # scores in a separate file
            _, left, right = official.groups()
            langs = (right, left) if official[1] in ENGLISH_FIRST else (left, right)
            label = english_first(langs)
            scores = next((files[each] for each in files if each.split("/")[-1] == gold.split("/")[-1]), Path(gold))
            called = label + (" news" if "track4b" in file else "")
            yield StsFile(f"sts17-{label}", "sts17", called, path, langs, gold=scores)
        elif (official := re.fullmatch(r"STS\d*\.input\.(?!ALL\.)(.+)\.txt", file)) and (year := year_of(folders)):
            called = official[1].removeprefix("surprise.")  # the name of the data set, such as OnWN or SMTnews
            yield StsFile(year, year, called, path, (lang, lang), gold=files.get(gold, Path(gold)))


def walk(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of every file, sorted by name; the name is relative to the parent of `root`."""
    top = root.resolve()
    for folder, below, names in os.walk(top, followlinks=True):
        relative = Path(folder).relative_to(top.parent)
        below[:] = sorted(name for name in below if name[0] != "." and len(relative.parts) <= DEPTH)
        for name in sorted(names):
            if name[0] != ".":
                yield (relative / uncompressed(name)).as_posix(), Path(folder, name)


def year_of(folders: Sequence[str]) -> str | None:
    """Return the SemEval year of the innermost folder whose name has one; None if none has, or for training data."""
    for name in reversed(folders):
        if re.search("train|trial", name, re.IGNORECASE):
            return None
        if stated := re.search(r"(?<!\d)201([2-6])(?!\d)|^STS1([2-6])(?!\d)", name, re.IGNORECASE):
            return f"201{stated[1] or stated[2]}"
        if name in UNPACKED:
            return UNPACKED[name]
    return None


def read_set(file: StsFile, without: Sequence[str] = ()) -> StsSet:
    """Read the sentence pairs of a data set that have a gold score. English sentences become the left sentences."""
    path, rows, name = file.path, [], file.name
    if file.gold:
        if not file.gold.exists():
            raise NotFound(f"{path}: the file of its gold scores, {file.gold.name}, is missing.")
        pairs, scores = list(text_lines(path)), list(text_lines(file.gold))
        if len(pairs) != len(scores):
            raise DataError(
                f"{file.gold}: {len(scores)} lines of gold scores for the {len(pairs)} pairs of {path.name}; "
                "line N must contain the score of pair N, or be empty if pair N has no score."
            )
        for (place, line), (_, given) in zip(pairs, scores, strict=True):
            score, (left, *others) = given.split("\t")[0], line.split("\t")
            if score.strip() and not others:
                hint = column_hint(left, 2)
                raise DataError(f"{path}:{place}: expected sentence <tab> sentence, found {left[:60]!r}{hint}.")
            if score.strip():
                rows.append((gold_score(file.gold, place, score), left, others[0]))
    else:
        wanted, names = [*file.columns], ["gold", "sentence", "sentence"]
        if file.year == "stsb" and without:
            name += f" without {', '.join(without)}"
            names.append("year")
            wanted.append(2 if path.name.startswith("sts-") else 3)  # the column that ends with the year: a/b/2016
        for place, (score, left, right, *origin) in tsv_rows(path, names, wanted):
            header = place == 1 and score == "relatedness_score"
            if not header and not any(each.split("/")[-1].startswith(tuple(without)) for each in origin):
                rows.append((gold_score(path, place, score), left, right))
    gold, left_side, right_side = np.array([row[0] for row in rows]), [row[1] for row in rows], [row[2] for row in rows]
    try:
        data = StsSet(file.year, name, gold, left_side, right_side, *file.langs)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if data.right_lang == "en" != data.left_lang:
        return replace(data, left=data.right, right=data.left, left_lang="en", right_lang=data.left_lang)
    return data


def gold_score(path: Path, line: int, text: str) -> float:
    """Parse the gold score of a sentence pair; DataError, with file and line, if it is not a number."""
    if math.isnan(value := number(text)):
        header = "; remove the line if it is a header" if line == 1 and text.strip().isalpha() else ""
        raise DataError(f"{path}:{line}: the gold score {no_number(text)}{header}.")
    return value


# The number of pairs with a gold score in each published data set. A file with another number causes a warning.

PAIRS = {
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
    """Return one warning for each reason why scores on these data sets may differ from published scores."""
    warnings = []
    for data in sets:
        published = PAIRS.get(data.year, {}).get(data.name)
        if published not in (None, len(data.gold)):
            warnings.append(f"{data} has {len(data.gold)} pairs; the published data set has {published}.")
    for year in dict.fromkeys(data.year for data in sets if data.year.isdigit()):
        names = {data.name for data in sets if data.year == year}
        # SMT of 2013 may be missing, because it has its own licence; `sts.explain` states whether it is used
        missing = PAIRS.get(year, {}).keys() - names - {"SMT"}
        if missing:
            warnings.append(f"{year} lacks {', '.join(sorted(missing))}: don't compare its score with published ones.")
    return warnings
