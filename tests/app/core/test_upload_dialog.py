"""A user's file: the guessed use of its columns, the rows that are used, and the pages that then offer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from app.core import startup, upload_dialog
from bgt_core.data.examples import example_sentences
from bgt_core.errors import BgtError

Open = Callable[..., Any]
LANGS = ("en", "fr", "de")


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
        ({"fr": ENGLISH, "German": FRENCH}, ["fr", "de"]),  # names have priority over contents
        ({"ANGLAIS": FRENCH, "Francais 2": ENGLISH}, ["en", "fr"]),
        ({"x": ENGLISH, "y": FRENCH, "comment": ENGLISH}, ["en", "fr", ""]),
        ({"x": examples("en", "es")[1]}, ["en"]),  # Spanish, a language that the model does not read
        ({"id": ENGLISH, "x": ENGLISH}, ["", "en"]),
    ],
)
def test_columns_are_taken_for_what_they_look_like(table: dict[str, list[str]], uses: list[str]) -> None:
    assert upload_dialog.guessed_uses(pd.DataFrame(table), LANGS) == uses


def test_a_file_of_another_kind_is_answered_in_our_words(opened: Open) -> None:
    app = opened("maps").upload("Sätze.xlsx", b"PK\3\4\0")
    assert "Save it as CSV (UTF-8)" in app.error[0].value
    app.file_uploader(key="own_file").set_value(("Sätze.csv", "Anglais;Français\nYes.;Oui.\n".encode(), "text/csv"))
    app.run()
    assert not app.error and [app.box("Anglais").value, app.box("Français").value] == ["en", "fr"]


def made(rows: list[list[str]], uses: list[str], drop: bool = True) -> tuple[startup.ParallelText, str]:
    _, text, left_out = upload_dialog.text_of(
        "f.tsv", pd.DataFrame(rows, columns=list("abcd")[: len(uses)]), uses, drop
    )
    return text, left_out


ROWS = [["one", "un", "1"], ["two", "", "2"], ["one", "un", "3"], ["x" * 3_000, "y", "4"], ["four", "quatre", ""]]


def test_rows_left_out_are_counted_by_reason() -> None:
    text, left_out = made(ROWS, ["en", "fr", "own"])
    assert text.table["0"].tolist() == ["one", "four"]
    assert left_out == "1 have an empty sentence; 1 have a sentence of more than 2,000 characters; " + (
        "1 repeat an earlier row."
    )
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
        (["en", "gold", "fr"], "b can't hold scores: a cell is not a number"),
        (["en", "fr", "de"], "No row can be used: 2 have an empty sentence"),
    ],
)
def test_columns_that_make_no_text_are_refused(uses: list[str], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        made([["a", "b", ""], ["c", "", "1"]], uses)


@pytest.mark.parametrize("cells", [["1,125", "2,250"], ["10 %", "5 %"], ["\uff15", "\uff13"], ["1,5E-1", "nan"]])
def test_numbers_in_another_spelling_are_scores_or_left_out_and_never_a_language(cells: list[str]) -> None:
    table = pd.DataFrame({"x": ENGLISH[:2], "score": cells, "y": cells})
    uses = upload_dialog.guessed_uses(table, ("xx", *LANGS))
    assert uses == ["en", "gold", ""]
    with pytest.raises(BgtError, match=r"Column score can't hold scores: a cell is not a number: .*; "):
        upload_dialog.text_of("a.tsv", table, uses, drop=True)
    assert upload_dialog.guessed_uses(table[["y"]], LANGS) == [""]


def test_a_file_is_offered_among_the_sentences_of_the_maps(opened: Open) -> None:
    app = opened("maps")
    lines = [f"{en}\t{fr}\t{topic}" for en, fr, topic in zip(ENGLISH, FRENCH, TOPICS, strict=True)]
    app.upload("mine.tsv", "\n".join([*lines, lines[0]]))
    assert [box.value for box in app.selectbox if box.label.startswith("Column ")] == ["en", "fr", "own"]
    assert any("41 rows read, 40 used." in part.value and "1 repeat" in part.value for part in app.markdown)
    app.press("Use these 40 rows")
    assert app.selectbox(key="data").value == "Yours: mine.tsv (en-fr)"
    assert not any(uploader.key == "own_file" for uploader in app.file_uploader)
    shown = app.dataframe[0].value["Sentence"]
    assert set(shown) == {*ENGLISH, *FRENCH}
