"""The app reads tables from spreadsheet programs of all countries, whatever their separators, quotes and encodings."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from app.core import inventory, uploads
from bgt_core.data.examples import example_sentences
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
    if separator != ",":  # commas separate columns only in .csv files
        assert table(text, "a.txt") == table(text, "a.tsv") == READ


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Yes, sir;Oui, monsieur\nNo, sir;Non, madame\n", [["Yes, sir", "No, sir"], ["Oui, monsieur", "Non, madame"]]),
        ("Yes;Oui;4,5\nNo;Non;3,0\n", [["Yes", "No"], ["Oui", "Non"], ["4.5", "3.0"]]),
        ("Yes;Oui;0,500\nNo;Non;+3,000\n", [["Yes", "No"], ["Oui", "Non"], ["0.500", "+3.000"]]),
        ("Yes;Oui;1,5E-1\nNo;Non;3\n", [["Yes", "No"], ["Oui", "Non"], ["1.5E-1", "3"]]),
        # these commas may separate thousands, so they are kept
        ("Yes;Oui;4,500\nNo;Non;3,000\n", [["Yes", "No"], ["Oui", "Non"], ["4,500", "3,000"]]),
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
        ('"Yes," he said.\tOui.\n"No."\tNon.\n', '"Yes," he said.'),  # these quotes belong to the sentence
        ('"Yes."\tOui.\nNo.\tNon.\n', '"Yes."'),
        ('"Yes."\t"Oui."\t4\n"No."\t"Non."\t3\n', "Yes."),  # quotes around all texts enclose cells
        ('"Well, ""yes""."\tOui.\nNo.\tNon.\n', 'Well, "yes".'),  # Excel doubles quotes in quoted cells
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
    ("start", "kind"), [(b"\xef\xbb\xbf\n<!DOCTYPE html>", "a web page"), (b"PK\3\4\0\xff", "a zip archive")]
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_a_document_under_the_name_of_a_table_is_named(name: str, start: bytes, kind: str) -> None:
    with pytest.raises(DataError, match=rf"{name}: {kind}.*, not text\. Save it as CSV"):
        uploads.cells(name, start + b"\nyes, no\n")


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", b"en\tfr\n a  b \tc d\r\n\t\ne\tf\n"), ("a.csv", b'en,fr\n"a b",c d\ne,f\n')]
)
def test_every_kind_gives_the_same_columns(name: str, content: bytes) -> None:
    assert table(content.decode(), name) == {"en": ["a b", "e"], "fr": ["c d", "f"]}


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (b"a b\tc d\n", ["Column 1", "Column 2"]),
        (b"score\ta\tb\n4.5\tx\ty\n", ["score", "a", "b"]),
        ("\u200fen\t\u200far\nx\ty\n".encode(), ["en", "ar"]),  # with Unicode marks of right-to-left text
        (b"what\thow much\nx\t1\ny\t2\n", ["what", "how much"]),  # words above columns of numbers are column titles
        (b"a\t1,125\nb\t3\n", ["Column 1", "Column 2"]),  # "1,125" is a number, not a title
        (b"a\t%\nb\t3\n", ["a", "%"]),
        (b"4.5\tx\ty\n1\tx\tz\n", ["Column 1", "Column 2", "Column 3"]),
        (b"text\t\ttext\nx\ty\tz\n", ["text", "Column 2", "text (3)"]),
    ],
)
def test_a_row_of_names_is_recognised(content: bytes, titles: list[str]) -> None:
    assert list(uploads.cells("a.tsv", content)) == titles
    assert list(uploads.cells("a.tsv", content, header=False)) == [f"Column {n + 1}" for n in range(len(titles))]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.pkl", b"x", "model.pkl: not a table of text. Save it as CSV .UTF-8.; .tsv, .txt are read, too."),
        ("a.tsv", b"fine\nbad \xff\n", "a.tsv:2: not UTF-8"),
        ("a.tsv", b"\x89PNG\0\0\xff", "a.tsv:1: not UTF-8, perhaps not text"),
        ("a.tsv", b" \t \n", "no rows"),
        ("a.tsv", b"a\tb\nc\n", "row 2 has 1 column, row 1 has 2"),
        ("a.tsv", b"a\tb\n" * 50_001, "more than 50,000 rows"),
        ("a.csv", b'"open,b\n', "not CSV"),
        ("a.csv", b"Anglais;Fran\xc3\xa7ais\n" + b"Yes;Oui\n" * 5 + b"No\n", "row 7 has 1 column, row 1 has 2"),
        ("a.csv", b"Yes, sir;Oui;4,5\nNo; no;Non;3,0\nSo;Si;2,0\n", "row 2 has 4 columns, row 1 has 3"),
        ("a.csv", b"Anglais;Fran\xc3\xa7ais\n", "no rows"),
        ("a.csv", b",".join([b"x"] * 101), "101 columns"),
        ("a.csv", b"Hello\nWell, yes\n", "row 2 has 2 columns.*: put cells .* in quotes, or save .* as .txt"),
    ],
)
def test_what_cannot_be_read_or_is_too_much_is_explained(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        uploads.cells(name, content)


Open = Callable[..., Any]
GUESSED = ("en", "fr", "de")


def examples(*langs: str) -> list[list[str]]:
    return [list(column) for column in zip(*example_sentences(langs)[:40], strict=True)]


ENGLISH, FRENCH = examples("en", "fr")
NUMBERS = [str(at / 10) for at in range(40)]
TOPICS = ["a", "b"] * 20


@pytest.mark.parametrize(
    ("table", "uses"),
    [
        ({"source": ENGLISH, "target": FRENCH}, ["en", "fr"]),
        ({"y": FRENCH, "x": ENGLISH, "topic": TOPICS, "amount": NUMBERS}, ["fr", "en", "own", "own"]),
        ({"Column 1": NUMBERS, "Column 2": ENGLISH, "Column 3": ENGLISH[::-1]}, ["gold", "en", "en"]),
        ({"score": NUMBERS, "x": FRENCH}, ["gold", "fr"]),
        ({"x": ENGLISH, "y": ENGLISH[::-1]}, ["en", "en"]),
        ({"fr": ENGLISH, "German": FRENCH}, ["fr", "de"]),  # the column titles decide, not the contents
        ({"ANGLAIS": FRENCH, "Francais 2": ENGLISH}, ["en", "fr"]),
        ({"x": ENGLISH, "y": FRENCH, "comment": ENGLISH}, ["en", "fr", ""]),
        ({"x": examples("en", "es")[1]}, ["en"]),  # Spanish text, which this model can't embed
        ({"id": ENGLISH, "x": ENGLISH}, ["", "en"]),
    ],
)
def test_columns_are_taken_for_what_they_look_like(table: dict[str, list[str]], uses: list[str]) -> None:
    assert uploads.guessed_uses(pd.DataFrame(table), GUESSED) == uses


def test_a_file_of_another_kind_is_answered_in_our_words(opened: Open) -> None:
    app = opened("maps").upload("Sätze.xlsx", b"PK\3\4\0")
    assert "Save it as CSV (UTF-8)" in app.error[0].value
    app.file_uploader(key="own_file").set_value(("Sätze.csv", "Anglais;Français\nYes.;Oui.\n".encode(), "text/csv"))
    app.run()
    assert not app.error and [app.box("Anglais").value, app.box("Français").value] == ["en", "fr"]


def made(rows: list[list[str]], uses: list[str], drop: bool = True) -> tuple[inventory.ParallelText, str]:
    _, text, left_out = uploads.text_of("f.tsv", pd.DataFrame(rows, columns=list("abcd")[: len(uses)]), uses, drop)
    return text, left_out


ROWS = [["one", "un", "1"], ["two", "", "2"], ["one", "un", "3"], ["x" * 3_000, "y", "4"], ["four", "quatre", ""]]


def test_rows_left_out_are_counted_by_reason() -> None:
    text, left_out = made(ROWS, ["en", "fr", "own"])
    assert text.table["0"].tolist() == ["one", "four"]
    reasons = "1 have an empty sentence", "1 have a sentence of more than 2,000 characters", "1 repeat an earlier row."
    assert left_out == "; ".join(reasons)
    text, left_out = made(ROWS, ["en", "fr", "own"], drop=False)
    assert text.table["0"].tolist() == ["one", "one", "four"] and "1 repeat an earlier row and are kept" in left_out
    assert "1 have no score" in made(ROWS, ["en", "fr", "gold"])[1]


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        (["", "", ""], "No column of sentences"),
        (["en", "en", "en"], "different languages"),
        (["en", "en", "fr"], "different languages"),
        (["en", "gold", "gold"], "More than one column of scores"),
        (["en", "gold", "fr"], "b can't be used as scores: a cell is not a number"),
        (["en", "fr", "de"], "No row can be used: 2 have an empty sentence"),
    ],
)
def test_columns_that_make_no_text_are_refused(uses: list[str], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        made([["a", "b", ""], ["c", "", "1"]], uses)


@pytest.mark.parametrize("cells", [["1,125", "2,250"], ["10 %", "5 %"], ["\uff15", "\uff13"], ["1,5E-1", "nan"]])
def test_numbers_in_another_spelling_are_scores_or_left_out_and_never_a_language(cells: list[str]) -> None:
    table = pd.DataFrame({"x": ENGLISH[:2], "score": cells, "y": cells})
    uses = uploads.guessed_uses(table, ("xx", *GUESSED))
    assert uses == ["en", "gold", ""]
    with pytest.raises(BgtError, match=r"Column score can't be used as scores: a cell is not a number: .*; "):
        uploads.text_of("a.tsv", table, uses, drop=True)
    assert uploads.guessed_uses(table[["y"]], GUESSED) == [""]


def test_a_file_is_offered_among_the_sentences_of_the_maps(opened: Open) -> None:
    app = opened("maps")
    lines = [f"{en}\t{fr}\t{topic}" for en, fr, topic in zip(ENGLISH, FRENCH, TOPICS, strict=True)]
    app.upload("mine.tsv", "\n".join([*lines, lines[0]]))
    assert [box.value for box in app.selectbox if box.label.startswith("Column ")] == ["en", "fr", "own"]
    assert any("Rows read: 41; used: 40." in part.value and "1 repeat" in part.value for part in app.markdown)
    app.press("Use these 40 rows")
    assert app.selectbox(key="data").value == "Yours: mine.tsv (en-fr)"
    assert not any(uploader.key == "own_file" for uploader in app.file_uploader)
    shown = app.dataframe[0].value["Sentence"]
    assert set(shown) == {*ENGLISH, *FRENCH}
