"""Exported files contain what the page shows."""

import io
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.io import from_json
from pyarrow import parquet

from app.core import display, exports, inventory, rows
from app.core.exports import publication
from app.core.latents import chart
from probes.results.store import Cell, write_cells

Open = Callable[..., Any]
Start = Callable[..., None]


@pytest.fixture
def table() -> pd.DataFrame:
    texts = ["=1+1", "-no", "@you", "plain", 'مرحبا, "こんにちは"\nline']
    return pd.DataFrame({"text": texts, "cosine": [-0.5, 0.25, 1.0, 1 / 3, 0.0], "own": [True, False] * 2 + [True]})


def test_csv_has_the_same_rows_and_a_spreadsheet_evaluates_nothing(table: pd.DataFrame) -> None:
    csv = pd.read_csv(io.BytesIO(exports.as_csv(table)))
    assert csv["cosine"].tolist() == pytest.approx(table["cosine"].tolist())  # numbers stay numbers
    assert csv["text"].tolist() == ["'=1+1", "'-no", "'@you", *table["text"][3:]]
    named = table.rename(columns={"text": "=SUM(A1)", "own": "@own"})
    assert pd.read_csv(io.BytesIO(exports.as_csv(named))).columns.tolist() == ["'=SUM(A1)", "cosine", "'@own"]


def test_vectors_stay_beside_their_sentences() -> None:
    table = rows.examples(("en", "fr"), 3)
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    file = parquet.read_table(io.BytesIO(exports.as_vectors(table, {"semantic": vectors, "language": -vectors})))
    assert file.column_names == ["id", "text", "lang", "semantic", "language"]
    assert str(file.schema.field("semantic").type) == "fixed_size_list<element: float>[4]"
    assert file["text"].to_pylist() == table["text"].tolist()
    assert np.array_equal(np.stack(file["semantic"].to_numpy()), vectors.astype(np.float32))
    assert np.array_equal(np.stack(file["language"].to_numpy()), -vectors.astype(np.float32))


def test_a_figure_for_paper_is_light_and_says_what_it_shows() -> None:
    table = inventory.sentences(inventory.GRAMMAR, 3_000).assign(x=0.0, y=1.0)
    many = chart.latent_map({"Map": table}, "words", ("en", "fr"))
    assert {trace.type for trace in many.data} == {"scattergl"}
    caption = "PCA of 6,000 sentences, seed 0. " * 5
    paper = publication(many, caption.strip())
    assert {trace.type for trace in paper.data} == {"scatter"}
    assert paper.layout.paper_bgcolor == paper.layout.plot_bgcolor == "white"
    assert " ".join(re.sub("<[^>]+>", " ", paper.layout.title.text).split()) == caption.strip()
    assert "&lt;b&gt;.tsv" in publication(many, "Pairs of <b>.tsv").layout.title.text
    assert paper.layout.width == pytest.approx(180 / 25.4 * 96, abs=1)
    assert many.layout.width is None  # the export does not change the figure on the screen
    marks = chart.latent_map({"Map": table.iloc[::100]}, "lang", ("en", "fr"))
    narrow = publication(marks, width_mm=85, grey=True)
    assert narrow.layout.width == pytest.approx(85 / 25.4 * 96, abs=1)
    assert {trace.marker.color for trace in narrow.data} == {"rgb(40, 40, 40)", "rgb(190, 190, 190)"}


@pytest.mark.parametrize("page", ["maps", "probes", "pairs"])
def test_every_figure_can_be_drawn_for_paper(
    start: Start, opened: Open, saved: Path, cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """In both themes, figures for print have light colours, and their captions say how they were computed."""
    drawn: list[go.Figure] = []
    captions: list[str] = []

    def draw(data: dict, key: str) -> None:
        drawn.extend([from_json(data["figure"])] if "figure" in data else [])
        captions.append(data.get("caption", "").replace("\n", " ") or drawn[-1].layout.title.text)

    monkeypatch.setattr(exports, "_figure", draw)
    monkeypatch.setattr(display, "current_theme", lambda: "dark")
    write_cells(tmp_path / "en.parquet", [cell])
    start("--model", saved, "--results", tmp_path)
    app = opened(page)
    buttons = [button.key for button in app.button if button.label == "PNG"]
    for key in buttons:
        app.button(key=key).click()
        app.run()
    assert len(captions) == len(buttons) > 0
    assert not any(display.INK["dark"] in figure.to_json() for figure in drawn)
    facts = "(weights|fingerprint|seed|random pairs).*" * 2
    assert all(re.search(facts, caption) for caption in captions)


@pytest.mark.parametrize(
    ("page", "show"),
    [*((page, "") for page in ("maps", "pairs", "card", "rewrite", "probes")), ("probes", "Latents compared")],
)
def test_no_export_holds_a_path_of_this_machine(
    start: Start, opened: Open, saved: Path, cell: Cell, tmp_path: Path, monkeypatch: Any, page: str, show: str
) -> None:
    given: list[bytes | str] = []

    def offer(name: str, table: Any = None, figure: Any = None, latex: Any = None, **settings: Any) -> None:
        given.extend([name, exports.link(), settings.get("title", "")])
        given.extend([exports.as_csv(table)] if table is not None else [])
        given.extend([exports.as_latex(latex)] if latex is not None else [])
        if figure is not None:
            given.append(publication(figure(theme="light"), settings.get("caption", "")).to_json())

    monkeypatch.setattr(exports, "offer", offer)
    for name in ("a", "b"):
        shutil.copytree(saved, tmp_path / name / "model")
        trail = {**cell.trail, "data": str(tmp_path / "labels.tsv"), "fingerprint": name}
        of_model = replace(cell, model=str(tmp_path / name / "model"), trail=trail)
        write_cells(tmp_path / f"{name}.parquet", [of_model])
    models = (part for name in ("a", "b") for part in ("--model", tmp_path / name / "model"))
    start(*models, "--results", tmp_path / "a.parquet", "--results", tmp_path / "b.parquet")
    app = opened(page, **{"show": show} if show else {})
    texts = [part if isinstance(part, str) else part.decode() for part in given]
    assert texts and not [text[:200] for text in texts if str(tmp_path) in text]
    assert not any(str(tmp_path) in element.value for kind in ("markdown", "caption") for element in app.get(kind))
