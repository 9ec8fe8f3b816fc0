"""Parse the lines of STS files (plain, .gz, .xz, .zst) as a `StsSet`; a DataError names the file and number of a bad
line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bgt_core.data.numbers import no_number, number
from bgt_core.data.textfile import SUFFIXES, column_hint, text_lines, uncompressed
from bgt_core.errors import BgtError, DataError, NotFound
from bgt_core.evaluation.sts.score import StsSet

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
    gold, left, right = [], [], []
    for place, fields in lines(path):
        if keep and not keep(fields):
            continue
        if len(fields) <= max(columns):
            line, numbers = "\t".join(fields), ", ".join(str(column + 1) for column in columns)
            expected = f"expected gold <tab> sentence <tab> sentence (columns {numbers})"
            hint = column_hint(line, len(columns))
            raise DataError(f"{path}:{place}: {expected}, found {line[:60]!r}{hint}.")
        score, left_text, right_text = (fields[column] for column in columns)
        gold.append(gold_score(path, place, score))
        left.append(left_text)
        right.append(right_text)
    return named(path, year, name, gold, left, right, langs)


def read_semeval(path: Path, year: str, name: str, langs: tuple[str, str], gold: Path | None = None) -> StsSet:
    """Read STS.input.NAME.txt, two sentences per line, and STS.gs.NAME.txt, one score per line; drop pairs without a
    score."""
    if gold is None:
        gold_name = uncompressed(path.name.replace(".input.", ".gs.", 1))
        paths = [other for end in SUFFIXES if (other := path.with_name(gold_name + end)).exists()]
        if not paths:
            raise NotFound(f"{path}: its gold scores, {gold_name}, are missing.")
        gold = paths[0]
    pairs, scores = list(lines(path)), list(lines(gold))
    if len(pairs) != len(scores):
        raise DataError(
            f"{gold}: {len(scores)} lines of gold for the {len(pairs)} pairs of {path.name}; "
            "line N must score pair N, empty where it has no score."
        )
    values, left, right = [], [], []
    for (place, fields), (_, given) in zip(pairs, scores, strict=True):
        if not given[0].strip():
            continue
        if len(fields) < 2:
            hint = column_hint(fields[0], 2)
            raise DataError(f"{path}:{place}: expected sentence <tab> sentence, found {fields[0][:60]!r}{hint}.")
        values.append(gold_score(gold, place, given[0]))
        left.append(fields[0])
        right.append(fields[1])
    return named(path, year, name, values, left, right, langs)


def named(
    path: Path, year: str, name: str, gold: list[float], left: list[str], right: list[str], langs: tuple[str, str]
) -> StsSet:
    """Make the set; its errors name the file."""
    try:
        return StsSet(year, name, np.array(gold), left, right, *langs)
    except BgtError as error:
        raise type(error)(f"{path}: {error}") from None


def gold_score(path: Path, line: int, text: str) -> float:
    if math.isnan(value := number(text)):
        header = "; remove the line if it is a header" if line == 1 and text.strip().isalpha() else ""
        raise DataError(f"{path}:{line}: the gold score {no_number(text)}{header}.")
    return value


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(number, columns) of each line; a line separator inside a sentence, such as U+2028, does not end a line."""
    return ((number, line.split("\t")) for number, line in text_lines(path))
