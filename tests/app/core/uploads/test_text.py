"""Tables as spreadsheets of other countries write them: separators, quotes, encodings, line ends."""

from __future__ import annotations

import csv
import io

import pytest

from app.core.uploads import formats
from bgt_core.errors import DataError

PAIRS = [["Yes, sir.", 'Oui ; "monsieur".'], ["No | no.", "Non\tnon; 4,5."], ["Maybe.", "Peut-être."], ["", "Bien."]]
READ = {"Anglais": [row[0] for row in PAIRS], "Français": [row[1].replace("\t", " ") for row in PAIRS]}


def written(delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows([list(READ), *PAIRS])
    return file.getvalue()


def table(text: str, name: str = "a.csv") -> dict[str, list[str]]:
    return formats.cells(name, text.encode()).to_dict("list")


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("separator", list(";|\t,"))
def test_any_separator_is_told_by_the_columns_it_makes(separator: str, quoting: int) -> None:
    text = written(separator, quoting)
    assert table(text) == READ
    assert table(f"sep={separator}\n{text}") == READ
    if separator != ",":  # in a text file commas are prose
        assert table(text, "a.txt") == table(text, "a.tsv") == READ


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Yes, sir;Oui, monsieur\nNo, sir;Non, madame\n", [["Yes, sir", "No, sir"], ["Oui, monsieur", "Non, madame"]]),
        ("Yes;Oui;4,5\nNo;Non;3,0\n", [["Yes", "No"], ["Oui", "Non"], ["4.5", "3.0"]]),
        ("Yes;Oui;0,500\nNo;Non;+3,000\n", [["Yes", "No"], ["Oui", "Non"], ["0.500", "+3.000"]]),
        ("Yes;Oui;1,5E-1\nNo;Non;3\n", [["Yes", "No"], ["Oui", "Non"], ["1.5E-1", "3"]]),
        ("Yes;Oui;4,500\nNo;Non;3,000\n", [["Yes", "No"], ["Oui", "Non"], ["4,500", "3,000"]]),  # maybe thousands
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
        ('"Yes," he said.\tOui.\n"No."\tNon.\n', '"Yes," he said.'),  # quotes of the text, as in lists of sentences
        ('"Yes."\tOui.\nNo.\tNon.\n', '"Yes."'),
        ('"Yes."\t"Oui."\t4\n"No."\t"Non."\t3\n', "Yes."),  # all texts are quoted
        ('"Well, ""yes""."\tOui.\nNo.\tNon.\n', 'Well, "yes".'),  # as Excel quotes
    ],
)
def test_quotes_between_tabs_are_those_of_the_table_or_of_the_text(text: str, first: str) -> None:
    assert table(text, "a.tsv")["Column 1"][0] == first


def test_sentences_with_marks_stay_whole_in_a_text_file() -> None:
    assert table('Yes.,Oui.\n"Hello, you!","Bonjour, toi !"\n', "a.txt") == {
        "Column 1": ["Yes.", "Hello, you!"],
        "Column 2": ["Oui.", "Bonjour, toi !"],
    }
    for text in ("Hello; there\nYes; no\n", "Hello, there\nYes, no\n", "a,b\nc,d\n", "Wait; what?\nNo.\n"):
        assert table(text, "a.txt") == {"Column 1": text.splitlines()}


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('""\nyes\n"no"\n', ['""', "yes", '"no"']),
        ('"a\n\nb"\nc\n', ['"a', 'b"', "c"]),
        ('He said:\n"Come in.\nSit down."\nShe sat.\n', ["He said:", '"Come in.', 'Sit down."', "She sat."]),
        ('"A"\n"B\nC"\n', ['"A"', '"B', 'C"']),
        ('sep="\nx\n', ['sep="', "x"]),  # a mark that can't separate
        ("sep=a\nx\n", ["sep=a", "x"]),
    ],
)
def test_odd_quotes_and_declarations_are_read_as_they_are(text: str, cells: list[str]) -> None:
    assert table(text, "a.tsv") == {"Column 1": cells}


def test_a_quotation_over_lines_is_text_and_a_cell_over_lines_is_a_cell() -> None:
    assert list(table('"Yes\tOui\nNo\tNon"\n', "a.tsv").values()) == [['"Yes', "No"], ["Oui", 'Non"']]
    assert table('id\ttext\n1\t"Yes,\n2\tno."\n', "a.tsv") == {"id": ["1", "2"], "text": ['"Yes,', 'no."']}
    assert table('id\ttext\n1\t"Yes,\nno."\n', "a.tsv") == {"id": ["1"], "text": ["Yes, no."]}
    assert table('"I came\nI saw"\nDone\n') == {"Column 1": ["I came I saw", "Done"]}


@pytest.mark.parametrize("line", ["SEP=;", "sep=; ", "sep=,;", '"Sep=;"', "sep=;;"])
def test_a_declared_separator_is_told_as_it_is_written(line: str) -> None:
    assert table(f"{line}\nen;fr\nYes, sir;Oui\n") == {"en": ["Yes, sir"], "fr": ["Oui"]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_lines_may_end_as_on_any_machine(end: str) -> None:
    text = "Anglais;Français\nYes.;Oui.\nNo.;Non.\n"
    expected = {"Anglais": ["Yes.", "No."], "Français": ["Oui.", "Non."]}
    assert table(text.replace("\n", end)) == table(text.replace("\n", end, 1)) == expected
    assert table('{"en": "a"}\n{"en": "b"}\n'.replace("\n", end), "a.jsonl") == {"en": ["a", "b"]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(encoding: str) -> None:
    assert formats.cells("a.csv", written(";").encode(encoding)).to_dict("list") == READ
    mark = "\ufeff"
    for order in ("le", "be") if encoding != "utf-8-sig" else ():
        assert formats.cells("a.csv", (mark + written(";")).encode(f"{encoding}-{order}")).to_dict("list") == READ


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-16-le", "not UTF-8, but perhaps UTF-16 without a byte order mark. Save it as CSV"),
        ("utf-16-be", "perhaps UTF-16"),
        ("utf-32-le", "perhaps UTF-32"),
        ("utf-32-be", "perhaps UTF-32"),
        ("cp1252", "a.csv:1: not UTF-8, but perhaps Windows-1252. Save it as CSV .UTF-8."),
    ],
)
def test_another_encoding_is_named(encoding: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        formats.cells("a.csv", written(";").encode(encoding))


def test_bytes_that_are_no_text_are_refused() -> None:
    for content in (b"a;b\0\nc;d\n", b"\x89PNG\0\0\xff", b"\xff\xfea\0b"):
        with pytest.raises(DataError, match=r"a.csv: not text\. Save it as CSV"):
            formats.cells("a.csv", content)
    with pytest.raises(DataError, match=r"a.csv:2: not UTF-8\. Save"):
        formats.cells("a.csv", "да\nнет\n".encode("cp1251").replace("да".encode("cp1251"), b"da"))


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
        formats.cells(name, start + b"\nyes, no\n")
