"""Tables written by spreadsheets of other countries: separators, quotes, encodings, line ends."""

from __future__ import annotations

import csv
import io

import pytest

from app.core import uploads
from bgt_core.errors import BgtError, DataError

PAIRS = [["Yes, sir.", 'Oui ; "monsieur".'], ["No | no.", "Non\tnon; 4,5."], ["Maybe.", "Peut-être."], ["", "Bien."]]
READ = {"Anglais": [row[0] for row in PAIRS], "Français": [row[1].replace("\t", " ") for row in PAIRS]}


def written(delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows([list(READ), *PAIRS])
    return file.getvalue()


def table(text: str, name: str = "a.csv") -> dict[str, list[str]]:
    return uploads.cells(name, text.encode()).to_dict("list")


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("separator", list(";|\t,"))
def test_any_separator_is_told_by_the_columns_it_makes(separator: str, quoting: int) -> None:
    text = written(separator, quoting)
    assert table(text) == READ
    assert table(f"sep={separator}\n{text}") == READ
    if separator != ",":  # in a text file, commas are part of sentences
        assert table(text, "a.txt") == table(text, "a.tsv") == READ


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Yes, sir;Oui, monsieur\nNo, sir;Non, madame\n", [["Yes, sir", "No, sir"], ["Oui, monsieur", "Non, madame"]]),
        ("Yes;Oui;4,5\nNo;Non;3,0\n", [["Yes", "No"], ["Oui", "Non"], ["4.5", "3.0"]]),
        ("Yes;Oui;0,500\nNo;Non;+3,000\n", [["Yes", "No"], ["Oui", "Non"], ["0.500", "+3.000"]]),
        ("Yes;Oui;1,5E-1\nNo;Non;3\n", [["Yes", "No"], ["Oui", "Non"], ["1.5E-1", "3"]]),
        ("Yes;Oui;4,500\nNo;Non;3,000\n", [["Yes", "No"], ["Oui", "Non"], ["4,500", "3,000"]]),  # perhaps thousands
        ("Well; yes,Oui\nSo; no,Non\n", [["Well; yes", "So; no"], ["Oui", "Non"]]),
        ("Yes ; Oui\nNo ; Non\n", [["Yes", "No"], ["Oui", "Non"]]),
        ("en;fr;\nYes;Oui;\n;;\n", [["Yes"], ["Oui"]]),
        ("Hello\nYes\n", [["Hello", "Yes"]]),
        ('1\tHe said "no".\n2\tI "have" to.\n', [["1", "2"], ['He said "no".', 'I "have" to.']]),
    ],
)
def test_marks_in_sentences_and_numbers_do_not_separate(text: str, columns: list[list[str]]) -> None:
    assert list(table(text).values()) == columns


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('"Yes," he said.\tOui.\n"No."\tNon.\n', '"Yes," he said.'),  # quotes in the text, in a list of sentences
        ('"Yes."\tOui.\nNo.\tNon.\n', '"Yes."'),
        ('"Yes."\t"Oui."\t4\n"No."\t"Non."\t3\n', "Yes."),  # every text is quoted
        ('"Well, ""yes""."\tOui.\nNo.\tNon.\n', 'Well, "yes".'),  # quoted as by Excel
    ],
)
def test_quotes_between_tabs_are_those_of_the_table_or_of_the_text(text: str, first: str) -> None:
    assert table(text, "a.tsv")["Column 1"][0] == first


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(encoding: str) -> None:
    assert uploads.cells("a.csv", written(";").encode(encoding)).to_dict("list") == READ
    mark = "\ufeff"
    for order in ("le", "be") if encoding != "utf-8-sig" else ():
        assert uploads.cells("a.csv", (mark + written(";")).encode(f"{encoding}-{order}")).to_dict("list") == READ


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32-be", "cp1252"])
def test_another_encoding_is_refused_and_the_way_out_named(encoding: str) -> None:
    with pytest.raises(DataError, match=r"a.csv:1: not UTF-8.*\. Save it as CSV .UTF-8."):
        uploads.cells("a.csv", written(";").encode(encoding))


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"%PDF-1.4\n%\xe2\xe3", "a PDF"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>", "a web page"),
        (b'<html lang="en">', "a web page"),
        (b"{\\rtf1 x}", "an RTF document"),
        (b"PK\3\4\0\xff", "a zip archive"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_a_document_under_the_name_of_a_table_is_named(name: str, start: bytes, kind: str) -> None:
    with pytest.raises(DataError, match=rf"{name}: {kind}.*, not text\. Save it as CSV"):
        uploads.cells(name, start + b"\nyes, no\n")


def of_bytes(content: bytes, name: str = "pairs.tsv") -> dict[str, list[str]]:
    return uploads.cells(name, content).to_dict("list")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", b"en\tfr\n a  b \tc d\r\n\t\ne\tf\n"),
        ("a.csv", b'en,fr\n"a b",c d\ne,f\n'),
    ],
)
def test_every_kind_gives_the_same_columns(name: str, content: bytes) -> None:
    assert of_bytes(content, name) == {"en": ["a b", "e"], "fr": ["c d", "f"]}


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (b"a b\tc d\n", ["Column 1", "Column 2"]),
        (b"score\ta\tb\n4.5\tx\ty\n", ["score", "a", "b"]),
        ("\u200fen\t\u200far\nx\ty\n".encode(), ["en", "ar"]),  # with the marks of a right-to-left spreadsheet
        (b"what\thow much\nx\t1\ny\t2\n", ["what", "how much"]),  # a word above numbers
        (b"a\t1,125\nb\t3\n", ["Column 1", "Column 2"]),  # a number in another spelling is not a name
        (b"a\t%\nb\t3\n", ["a", "%"]),
        (b"4.5\tx\ty\n1\tx\tz\n", ["Column 1", "Column 2", "Column 3"]),
        (b"text\t\ttext\nx\ty\tz\n", ["text", "Column 2", "text (3)"]),
    ],
)
def test_a_row_of_names_is_recognised(content: bytes, titles: list[str]) -> None:
    assert list(of_bytes(content)) == titles
    assert list(uploads.cells("a.tsv", content, header=False)) == [f"Column {n + 1}" for n in range(len(titles))]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pkl", b"x", "model.pkl: not a table of text. Save it as CSV .UTF-8.; .tsv, .txt are read, too."),
        *((f"a.{kind}", b"PK", "not a table of text. Save it as CSV") for kind in ("xlsx", "parquet", "zip")),
        ("a.tsv", b"fine\nbad \xff\n", "a.tsv:2: not UTF-8"),
        ("a.tsv", b"\x89PNG\0\0\xff", "a.tsv:1: not UTF-8, perhaps not text"),
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
        ("a.tsv", b"\t".join([b"x"] * 101), "101 columns"),
        ("a.csv", b",".join([b"x"] * 101), "101 columns"),
        ("a.csv", b"Hello\nWell, yes\n", "row 2 has 2 columns.*: quote cells that hold a comma .*, or save .* as .txt"),
    ],
)
def test_what_cannot_be_read_or_is_too_much_is_explained(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        uploads.cells(name, content)
