"""Files of labelled pairs, and what is wrong with them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.pairs.files import LabelledPairs, read_labelled

ROWS = [(int(n % 3 == 0), f"how old is city {n}", f"how old is that city {n}") for n in range(60)]


def written(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_is_read_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    plain = read_labelled(written(tmp_path / "a.tsv", ROWS))
    assert (len(plain), plain.left[1], plain.labels[:4].tolist()) == (
        60,
        "how old is city 1",
        [True, False, False, True],
    )
    other = written(tmp_path / "b.tsv", [(number, b, label, a, "x") for number, (label, a, b) in enumerate(ROWS)])
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress(other.read_bytes()))
    again = read_labelled(packed, ["_", "b", "label", "a"])
    assert (list(again.left), list(again.right)) == (list(plain.left), list(plain.right))
    assert np.array_equal(again.labels, plain.labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\tb\n1\ta\n", r"bad\.tsv:2: 2 columns, expected 3: label, a, b"),
        ("1\ta\tb\n\n", r"bad\.tsv:2: the line is empty; remove it"),
        ("x\n", r"bad\.tsv:1: 1 column, expected 3"),
        ("label\ta\tb\n", r"bad\.tsv:1: the label is 'label'; expected 1"),
        ("1,0\ta\tb\n", r"bad\.tsv:1: the label is '1,0'; expected 1 .* or 0, without a comma"),
        ("1\ta\tb\n0.5\ta\tb\n", r"bad\.tsv:2: the label is '0\.5'"),
        ("1\ta\t \n", r"bad\.tsv:1: an empty sentence"),
        ("1\ta\tb\n1\tc\td\n", r"bad\.tsv: 2 of 2 labels are 1"),
        ("", r"bad\.tsv: 0 of 0 labels are 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_by_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labelled(tmp_path / "bad.tsv")


def test_other_columns_and_absent_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="columns label,a: expected label, a and b"):
        read_labelled(tmp_path / "a.tsv", ["label", "a"])
    with pytest.raises(NotFound, match=r"a\.tsv"):
        read_labelled(tmp_path / "a.tsv")
    with pytest.raises(DataError, match="1 labels, 2 left"):
        LabelledPairs("x", np.array([True]), ["a", "b"], ["a"])
