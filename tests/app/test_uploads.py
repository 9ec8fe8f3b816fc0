"""Files that people bring: what is read, what is refused and in which words."""

from __future__ import annotations

import pytest

from app import uploads
from bgt_core.errors import BgtError


def test_sentences_are_the_first_column_normalised() -> None:
    assert uploads.sentences("a.txt", "One  line.\r\n\n Zwei\u200b. \n".encode()) == ["One line.", "Zwei."]
    assert uploads.sentences("a.tsv", b'He said "no"\tx\n') == ['He said "no"']
    assert uploads.sentences("a.csv", b'"Well, yes",x\n') == ["Well, yes"]


GOLD = {"left": ["a b", "e"], "right": ["c d", "f"], "gold": [4.5, 1.0]}


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"a b\tc d\n", {"left": ["a b"], "right": ["c d"]}),
        (b"4.5\ta b\tc d\n1\te\tf\n", GOLD),
        (b"a b\tc d\t4.5\ne\tf\t1\n", GOLD),
        (b"score\ta\tb\n4.5\ta b\tc d\n1\te\tf\n", GOLD),
        (b"a b\tc d\tyes\n", {"left": ["a b"], "right": ["c d"]}),  # the third column holds no scores
    ],
)
def test_pairs_find_their_columns(content: bytes, columns: dict[str, list]) -> None:
    assert uploads.pairs("pairs.tsv", content).to_dict("list") == columns


def test_any_script_and_any_markup_survive() -> None:
    text = "<img src=x onerror=alert(1)>\tمرحبا\tこんにちは\n"
    assert uploads.cells("a.tsv", text.encode()) == [["<img src=x onerror=alert(1)>", "مرحبا", "こんにちは"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pkl", b"x", "expected a file that ends in"),
        ("a.tsv", b"fine\nbad \xff\n", "a.tsv:2: not UTF-8"),
        ("a.tsv", b"one column\n", "two columns"),
        ("a.tsv", b"", "no rows"),
        ("a.tsv", b" \t \n", "no rows"),
        ("a.tsv", b"a\tb\nc\n", "row 2 has 1 columns"),
        ("a.tsv", b"a\tb\n" * 1_000_000, "more than 20,000"),
        ("a.csv", b'"open,b\n', "not CSV"),
        ("a.tsv", b"a" * 3_000 + b"\tb\n", "more than 2,000 characters"),
        ("a.tsv", b"score\tleft\tright\n", "two columns"),
    ],
)
def test_what_cannot_be_read_is_explained(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        uploads.pairs(name, content)
