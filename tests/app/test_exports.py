"""Files that people take away hold what they saw."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.io
import pytest

from app import exports, rows
from app.charts import maps


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": ["=1+1", "-no", "@you", "plain", 'مرحبا, "こんにちは"\nline'],
            "cosine": [-0.5, 0.25, 1.0, 1 / 3, 0.0],
            "own": [True, False, True, False, True],
        }
    )


def test_csv_parquet_and_jsonl_hold_the_same_rows(table: pd.DataFrame) -> None:
    parquet = pd.read_parquet(io.BytesIO(exports.as_parquet(table)))
    assert parquet.equals(table)
    lines = [json.loads(line) for line in exports.as_jsonl(table).splitlines()]
    assert [line["text"] for line in lines] == table["text"].tolist()
    csv = pd.read_csv(io.BytesIO(exports.as_csv(table)))
    assert csv["cosine"].tolist() == pytest.approx(table["cosine"].tolist())
    assert csv["text"].tolist()[3:] == table["text"].tolist()[3:]


def test_a_spreadsheet_computes_nothing(table: pd.DataFrame) -> None:
    csv = pd.read_csv(io.BytesIO(exports.as_csv(table)))
    assert csv["text"].tolist()[:3] == ["'=1+1", "'-no", "'@you"]
    assert csv["cosine"][0] == -0.5  # a number stays one


def test_latex_is_balanced_and_escaped() -> None:
    shown = pd.DataFrame(
        [["50% & {x}_y", 50.0, None], ["مرحبا こんにちは", float("nan"), "–"]], columns=["Task", "Value", "Note"]
    )
    text = exports.as_latex(shown)
    assert r"50\% \& \{x\}\_y" in text and "50.0" in text and "nan" not in text and "مرحبا こんにちは" in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    bare = text.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex (TeX Live) on PATH: only brackets are checked")
def test_latex_compiles(tmp_path: Path) -> None:
    shown = pd.DataFrame([["50% & {x}_y ^ ~ \\ # $ < [", 50.0]], columns=["Task [a]", "Value"])
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\n\\end{document}"
    (tmp_path / "page.tex").write_text(page % exports.as_latex(shown), "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_figure_comes_back_from_json() -> None:
    table = rows.examples(("en", "fr"), 5).assign(x=0.0, y=1.0)
    figure = maps.latent_map({"Map": table}, "words", ("en", "fr"))
    again = plotly.io.from_json(figure.to_json())
    assert len(again.data) == len(figure.data) > 1
    for trace, read in zip(figure.data, again.data, strict=True):
        x = np.frombuffer(base64.b64decode(read.x["bdata"]), read.x["dtype"])  # plotly keeps arrays packed
        assert np.array_equal(trace.x, x) and trace.customdata == read.customdata
    assert again.layout.coloraxis == figure.layout.coloraxis
