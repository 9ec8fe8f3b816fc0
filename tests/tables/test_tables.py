"""A table has the same numbers in all file formats; special characters are escaped."""

import csv
from pathlib import Path

import pytest
from pyarrow import parquet

from bgt_core.cli.options import check_folder
from bgt_core.errors import BgtError
from bgt_core.tables import Estimate, Table, p_text, save, show

TABLE = Table(
    ["set", "pairs", "50% of_#1 & {co}", "b"],
    [
        ["2012 [x]~^\\|<>$", 750, Estimate(66.24, 65.04, 67.45, "best"), 1.25],
        ["é 東京", 3, Estimate(-0.04, -1.5, 2.0, "tied"), None],
    ],
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    written = {"csv": tmp_path / "t.csv", "latex": tmp_path / "t.tex", "parquet": tmp_path / "t.parquet"}
    for path in written.values():
        save(TABLE, path, "two notes\non two lines")
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "t.tex", "t.parquet"}
    return written


def test_csv_and_parquet_have_the_same_exact_numbers(files: dict[str, Path]) -> None:
    rows = parquet.read_table(files["parquet"]).to_pylist()
    assert rows == TABLE.records()
    assert rows[0]["50% of_#1 & {co} ci_high"] == 67.45
    assert rows[0]["50% of_#1 & {co} mark"] == "best"
    with files["csv"].open(encoding="utf-8", newline="") as file:
        text = list(csv.DictReader(file))
    assert text == [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]


def test_a_column_may_have_intervals_in_some_rows_only(tmp_path: Path) -> None:
    table = Table(["a", "b"], [[None, "x"], [Estimate(2.0, 1.0, 3.0), "y"]])
    for name in ("t.csv", "t.parquet"):
        save(table, tmp_path / name)
    expected = [
        {"a": None, "a ci_low": None, "a ci_high": None, "a mark": None, "b": "x"},
        {"a": 2.0, "a ci_low": 1.0, "a ci_high": 3.0, "a mark": "", "b": "y"},
    ]
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == expected
    assert (tmp_path / "t.csv").read_text("utf-8") == "a,a ci_low,a ci_high,a mark,b\n,,,,x\n2.0,1.0,3.0,,y\n"


def test_rows_are_printed_with_rounded_numbers(capsys: pytest.CaptureFixture) -> None:
    show(TABLE.columns, TABLE.lines())
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert printed[0] == TABLE.columns
    assert printed[1][1:] == ["750", "66.2 [65.0, 67.5] *", "1.2"]
    assert printed[2][1:] == ["3", "0.0 [-1.5, 2.0] =", ""]


def test_latex_is_a_booktabs_tabular_of_escaped_text(files: dict[str, Path]) -> None:
    lines = files["latex"].read_text("utf-8").splitlines()
    assert lines == [
        "% two notes",
        "% on two lines",
        "% bold marks the best of a row; underlining marks the best scores of a row if they don't differ significantly",
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"set & pairs & 50\% of\_\#1 \& \{co\} & b \\",
        r"\midrule",
        r"2012 {[}x]\textasciitilde{}\textasciicircum{}\textbackslash{}\textbar{}\textless{}\textgreater{}\$"
        r" & 750 & \textbf{66.2} [65.0, 67.5] & 1.2 \\",
        r"é 東京 & 3 & \underline{0.0} [-1.5, 2.0] &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_terminal_draws_brackets_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    show(TABLE.columns, TABLE.lines())
    drawn = capsys.readouterr().out
    assert "2012 [x]" in drawn
    assert "66.2 [65.0, 67.5] *" in drawn


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(BgtError, match=r"t\.csv: can't be written"):
        save(TABLE, tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    with pytest.raises(BgtError, match=r"out .*t\.tex: the folder"):
        check_folder(tmp_path / "nowhere" / "t.tex")


def test_p_values_below_1e_4_are_shown_as_a_bound() -> None:
    assert [p_text(p) for p in (1.0, 0.0123, 1e-4, 9e-5, 0.0)] == ["1", "0.012", "0.0001", "<0.0001", "<0.0001"]


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(BgtError, match="Two columns of a table are named 'a'"):
        Table(["a", "b", "a"], [])
