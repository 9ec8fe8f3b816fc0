"""The lines of STS files -> a `StsSet`; whatever is wrong with one is a BgtError with its file and number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

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
    """A file of tab-separated columns, those of gold, left and right given; further ones are left alone."""
    gold, left, right = [], [], []
    for number, fields in lines(path):
        if keep and not keep(fields):
            continue
        try:
            score, one, two = (fields[column] for column in columns)
            gold.append(finite(score))
        except (IndexError, ValueError):
            found = repr("\t".join(fields)[:60])
            where = ", ".join(str(column + 1) for column in columns)
            raise DataError(
                f"{path}:{number}: expected gold <tab> sentence <tab> sentence (columns {where}), found {found}."
            ) from None
        left.append(one)
        right.append(two)
    return named(path, year, name, gold, left, right, langs)


def read_semeval(path: Path, year: str, name: str, langs: tuple[str, str], gold: Path | None = None) -> StsSet:
    """STS.input.NAME.txt, two sentences a line, and STS.gs.NAME.txt, a score a line; pairs without one are dropped."""
    gold = gold or path.with_name(path.name.replace(".input.", ".gs.", 1))
    if not gold.exists():
        raise NotFound(f"{path}: its gold scores, {gold.name}, are missing.")
    pairs, scores = list(lines(path)), list(lines(gold))
    if len(pairs) != len(scores):
        raise DataError(
            f"{gold}: {len(scores)} lines of gold for the {len(pairs)} pairs of {path.name}; "
            "line N must score pair N, empty where it has no score."
        )
    values, left, right = [], [], []
    for (number, fields), (_, given) in zip(pairs, scores, strict=True):
        if not given[0].strip():
            continue
        if len(fields) < 2:
            raise DataError(f"{path}:{number}: expected sentence <tab> sentence, found {fields[0][:60]!r}.")
        try:
            values.append(finite(given[0]))
        except ValueError:
            raise DataError(f"{gold}:{number}: expected a gold score, found {given[0][:60]!r}.") from None
        left.append(fields[0])
        right.append(fields[1])
    return named(path, year, name, values, left, right, langs)


def named(
    path: Path, year: str, name: str, gold: list[float], left: list[str], right: list[str], langs: tuple[str, str]
) -> StsSet:
    """The set, or what is wrong with it, with its file's name."""
    try:
        return StsSet(year, name, np.array(gold), left, right, *langs)
    except BgtError as error:
        raise type(error)(f"{path}: {error}") from None


def finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(number, columns) of each line; a line separator inside a sentence, as U+2028, parts nothing."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path}: can't be read: {error.strerror}.") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        try:
            yield number, line.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number}: not UTF-8: {line[:60]!r}.") from None
