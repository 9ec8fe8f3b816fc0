"""Files that people bring: what is read, what is refused and in which words."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from app.core.uploads import formats
from bgt_core.errors import BgtError


def as_parquet(columns: dict[str, list[str]]) -> bytes:
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


def table(content: bytes, name: str = "pairs.tsv") -> dict[str, list[str]]:
    return formats.cells(name, content).to_dict("list")


def test_cells_are_normalised_and_quotes_are_those_of_csv_alone() -> None:
    assert table("One  line.\r\n\n Zwei\u200b. \n".encode(), "a.txt") == {"Column 1": ["One line.", "Zwei."]}
    assert table(b'He said "no"\tx\n')["Column 1"] == ['He said "no"']
    assert table(b'"Well, yes",x\n', "a.csv")["Column 1"] == ["Well, yes"]


def test_a_column_is_of_numbers_only_if_it_can_be_read_as_such() -> None:
    assert formats.numbers(["1", "", "2.5", "-1e3"]) and not formats.numbers([""])
    for other in ("1_000", "inf", "nan", "one"):
        assert not formats.numbers(["1", other])


def test_a_long_cell_is_read_in_every_kind_of_file() -> None:
    long = "a" * 200_000
    for name in ("a.csv", "a.tsv"):
        assert table(f"{long}\tb\n".replace("\t", "," if name == "a.csv" else "\t").encode(), name)["Column 1"] == [
            long
        ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", b"en\tfr\n a  b \tc d\r\n\t\ne\tf\n"),
        ("a.csv", b'en,fr\n"a b",c d\ne,f\n'),
        ("a.jsonl", b'{"en": "a b", "fr": "c d"}\n\n{"fr": "f", "en": "e"}\n'),
    ],
)
def test_every_kind_gives_the_same_columns(name: str, content: bytes) -> None:
    assert table(content, name) == {"en": ["a b", "e"], "fr": ["c d", "f"]}


def test_parquet_keeps_what_is_no_list() -> None:
    file = io.BytesIO()
    frame = pd.DataFrame({"en": ["a b", None], "n": [1, 2], "v": [[0.1], [0.2]]})
    frame.to_parquet(file)
    assert table(file.getvalue(), "a.parquet") == {"en": ["a b", ""], "n": ["1", "2"]}


def test_records_in_objects_become_columns_and_lists_are_left_out() -> None:
    lines = b'{"id": 1, "translation": {"en": "a", "fr": "b", "x": {}}, "v": [1]}\n{"translation": {"fr": "d"}}\n'
    assert table(lines, "a.jsonl") == {"id": ["1", ""], "en": ["a", ""], "fr": ["b", "d"]}
    lines = b'{"q": {"text": "a"}, "text": "b", "q.text": "c"}\n'
    assert table(lines, "a.jsonl") == {"q.text": ["a"], "text": ["b"], "q.text (3)": ["c"]}


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (b"a b\tc d\n", ["Column 1", "Column 2"]),
        (b"score\ta\tb\n4.5\tx\ty\n", ["score", "a", "b"]),
        ("\u200fen\t\u200far\nx\ty\n".encode(), ["en", "ar"]),  # as a spreadsheet from right to left
        (b"what\thow much\nx\t1\ny\t2\n", ["what", "how much"]),  # a word above numbers
        (b"a\t1,125\nb\t3\n", ["Column 1", "Column 2"]),  # a number in another spelling is no name
        (b"a\t%\nb\t3\n", ["a", "%"]),
        (b"4.5\tx\ty\n1\tx\tz\n", ["Column 1", "Column 2", "Column 3"]),
        (b"text\t\ttext\nx\ty\tz\n", ["text", "Column 2", "text (3)"]),
    ],
)
def test_a_row_of_names_is_recognised(content: bytes, titles: list[str]) -> None:
    assert list(table(content)) == titles
    assert list(formats.cells("a.tsv", content, header=False)) == [f"Column {n + 1}" for n in range(len(titles))]


def test_any_script_and_any_markup_survive() -> None:
    text = "<img src=x onerror=alert(1)>\tمرحبا\tこんにちは\n"
    assert [*table(text.encode()).values()] == [["<img src=x onerror=alert(1)>"], ["مرحبا"], ["こんにちは"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pkl", b"x", "model.pkl: not a table of text. Save it as CSV .UTF-8.; .tsv, .txt, .jsonl, .parquet"),
        *(
            (f"a.{kind}", b"PK", "not a table of text. Save it as CSV")
            for kind in ("xlsx", "ods", "docx", "zip", "png")
        ),
        ("a.tsv", b"fine\nbad \xff\n", "a.tsv:2: not UTF-8"),
        ("a.tsv", b"\x89PNG\0\0\xff", "a.tsv: not text"),
        ("a.parquet", b"PAR1?", "not a Parquet file"),
        ("a.jsonl", b'{"en": "x"}\n[1]\n', "a.jsonl:2: expected a JSON object"),
        ("a.tsv", b"", "no rows"),
        ("a.tsv", b" \t \n", "no rows"),
        ("a.tsv", b"a\tb\nc\n", "row 2 has 1 column, the first has 2"),
        ("a.tsv", b"a\tb\n" * 50_001, "more than 50,000 rows"),
        ("a.csv", b'"open,b\n', "not CSV"),
        ("a.csv", b"Anglais;Fran\xc3\xa7ais\n" + b"Yes;Oui\n" * 5 + b"No\n", "row 7 has 1 column, the first has 2"),
        ("a.csv", b"Yes, sir;Oui;4,5\nNo; no;Non;3,0\nSo;Si;2,0\n", "row 2 has 4 columns, the first has 3"),
        ("a.csv", b";".join([b"x"] * 101), "101 columns"),
        ("a.csv", b"Anglais;Fran\xc3\xa7ais\n", "no rows"),
        ("a.tsv", b"score\tleft\tright\n", "no rows"),
        ("a.parquet", as_parquet({"en": ["x"] * 50_001}), "more than 50,000 rows"),
        ("a.parquet", as_parquet({f"c{at}": ["x"] for at in range(101)}), "101 columns, more than 100"),
        ("a.tsv", b"\t".join([b"x"] * 101), "101 columns"),
        ("a.csv", b",".join([b"x"] * 101), "101 columns"),
        ("a.jsonl", b'{"en": "x"}\n' * 50_002, "more than 50,000 rows"),
        ("a.jsonl", b'{"en": ' + b"[" * 100_000 + b"\n", "a.jsonl:1: .*nested too deeply.*; expected a JSON object"),
        ("a.jsonl", b'{"en": ' + b"1" * 6_000 + b"}\n", "a.jsonl:1: .*too long.*; expected a JSON object"),
        ("a.jsonl", b'{"en": "x", "n": NaN}\n', "a.jsonl:1: .*NaN is not a JSON number.*; expected a JSON object"),
        ("a.jsonl", b'{"en": ["x"]}\n', "no rows.*; lists and nested records are left out"),
        ("a.csv", b"Hello\nWell, yes\n", "row 2 has 2 columns.*: quote cells that hold a comma .*, or save .* as .txt"),
    ],
)
def test_what_cannot_be_read_or_is_too_much_is_explained(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        formats.cells(name, content)
