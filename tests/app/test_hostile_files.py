"""A damaged or malicious file is refused with one line, and nothing else is affected."""

import io
import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bgt_core.errors import BgtError
from probes.results.store import Cell, read_cells, write_cells
from tests.app.conftest import HOSTILE, KINDS, hostile_in


def damaged(content: bytes, seed: int) -> bytes:
    draw, changed = random.Random(seed), bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 20))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed[: draw.choice((None, len(changed), draw.randrange(len(changed))))])


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_a_damaged_parquet_file_is_read_or_refused(start: int, cell: Cell) -> None:
    few = io.BytesIO()
    write_cells(few, [replace(cell, result=replace(cell.result, predictions=cell.predictions.slice(0, 40)))])
    for seed in range(start, start + 100):
        with suppress(BgtError):  # only these errors are allowed
            read_cells("a.parquet", damaged(few.getvalue(), seed))


@pytest.mark.parametrize(("name", "value"), [("accuracy", "high"), ("n_train", [1]), ("latent", {"a": 1}), ("sd", {})])
def test_results_of_other_types_are_refused(cell: Cell, tmp_path: Path, name: str, value: Any) -> None:
    rows = [replace(row, **{name: value}) for row in cell.result.rows]
    write_cells(tmp_path / "a.parquet", [replace(cell, result=replace(cell.result, rows=rows))])
    with pytest.raises(BgtError, match=rf"a\.parquet: incomplete: {name} is missing or of the wrong type"):
        read_cells(tmp_path / "a.parquet")


def test_a_file_that_cannot_be_read_hides_no_other(opened: Callable, cell: Cell) -> None:
    app, good = opened("probes"), io.BytesIO()
    write_cells(good, [cell])
    files = {"bad.parquet": b"PAR1", "good.parquet": good.getvalue()}
    (uploader,) = (part for part in app.file_uploader if part.label.startswith("Files of"))
    uploader.set_value([(name, content, "application/octet-stream") for name, content in files.items()])
    app.run()
    assert ["bad.parquet" in part.value for part in app.error] == [True]
    assert len(app.session_state["uploaded"]) == 1 and app.get("plotly_chart")


def test_whatever_a_card_adds_is_shown(saved: Path, tmp_path: Path, start: Callable, opened: Callable) -> None:
    model = Path(shutil.copytree(saved, tmp_path / "model"))
    config = json.loads((model / "config.json").read_text("utf-8"))
    more = {"scores": {"x": 1, "y": {"a": None, "b": "c"}}, "mine": [{"a": 1}, 3], "deep": {"a": [[{}]]}}
    more |= {"": 0, "z": [[]]}
    (model / "config.json").write_text(json.dumps(config | {"card": more}), "utf-8")
    (model / "metrics.jsonl").write_text('{"kind": "valid", "step": 1, "elbo": "x"}\n{"kind": "valid"}\n[]\n\0\n')
    start("--model", model)
    assert "Mine" in [head.value for head in opened("card").subheader]


ALWAYS = ("ckpt", "own", "rows", "pairs", "data", "how")  # URL parameters that belong to no control
VALUES = (
    HOSTILE, "", " ", "9" * 5_000, "-1", "1e999", "NaN", "٣" * 12, "\0", "\ud7ff", "true", "[" * 5_000, "a,b,,",
    '{"a": 1}', "../../etc/passwd", "<img src=x onerror=alert(1)>", "x" * 20_000, "🙂" * 300, "=1+1", "%00",
    "en1-999999999", "~.-", "en" + "9" * 400, "a\nb\r\nc", "Both", "English", "\u202e", ";" * 50, "((((", "0.5", "5",
)  # fmt: skip
PAGES = ("maps", "pairs", "rewrite", "probes", "split", "card")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_any_address_opens_and_shows_no_markdown(page: str, opened: Callable) -> None:
    draw = random.Random(page)
    app = opened(page)
    names = [*dict.fromkeys([*ALWAYS, *(widget.key for kind in KINDS for widget in app.get(kind) if widget.key)])]
    for count in (2, len(names)):
        link = {name: draw.choice(VALUES) for name in draw.sample(names, count)}
        assert not hostile_in(opened(page, **link)), link
