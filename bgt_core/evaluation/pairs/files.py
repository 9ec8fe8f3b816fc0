"""Files of labelled pairs: tab-separated columns of a label, 1 or 0, and two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bgt_core.data.columns import SKIPPED
from bgt_core.data.textfile import column_hint, text_lines
from bgt_core.errors import DataError, UsageError

COLUMNS = ("label", "a", "b")  # as in most files of Quora and MRPC


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """N pairs of sentences; True means that both mean the same. Raises DataError if one kind of pair is missing."""

    name: str
    labels: np.ndarray  # (N,) bool
    left: Sequence[str]
    right: Sequence[str]

    def __post_init__(self) -> None:
        if not len(self.labels) == len(self.left) == len(self.right):
            counts = f"{len(self.labels)} labels, {len(self.left)} left and {len(self.right)} right sentences"
            raise DataError(f"{self.name}: {counts}; expected one of each per pair, in the same order.")
        positive = int(np.sum(self.labels))
        if not 0 < positive < len(self.labels):
            raise DataError(f"{self.name}: {positive} of {len(self.labels)} labels are 1; expected some 1 and some 0.")

    def __len__(self) -> int:
        return len(self.labels)


def read_labelled(path: Path | str, columns: Sequence[str] = COLUMNS) -> LabelledPairs:
    """Read the pairs of a TSV, plain, .gz, .xz or .zst, without header and quotes.

    `columns` gives the positions of "label", "a" and "b"; "_" skips a column, as do columns at the end. Raises
    UsageError for other columns, NotFound for an absent file, DataError for a damaged one and, by file and line, for a
    line with fewer columns, an empty sentence, or a label that is neither 1 nor 0.
    """
    if sorted(column for column in columns if column != SKIPPED) != sorted(COLUMNS):
        text = f"{','.join(columns)}: expected label, a and b once each, and _ for columns to skip."
        raise UsageError(text, parameter="columns")
    at = [list(columns).index(name) for name in COLUMNS]
    labels: list[bool] = []
    left: list[str] = []
    right: list[str] = []
    for number, line in text_lines(Path(path)):
        fields = line.split("\t")
        if not line.strip():
            raise DataError(f"{path}:{number}: the line is empty; remove it.")
        if len(fields) <= max(at):
            hint = column_hint(line, len(columns))
            count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            problem = f"{count}, expected {max(at) + 1}: {', '.join(columns)}"
            raise DataError(f"{path}:{number}: {problem}{hint}.")
        label, *texts = (fields[column].strip() for column in at)
        if label not in ("0", "1"):
            rule = "expected 1 (they mean the same) or 0" + (", without a comma" if "," in label else "")
            raise DataError(f"{path}:{number}: the label is {label[:60]!r}; {rule}.")
        if not all(texts):
            raise DataError(f"{path}:{number}: an empty sentence; remove the line.")
        labels.append(label == "1")
        left.append(texts[0])
        right.append(texts[1])
    return LabelledPairs(Path(path).name, np.array(labels, dtype=bool), left, right)
