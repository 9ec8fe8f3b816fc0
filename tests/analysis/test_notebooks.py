"""The notebooks run on the stored results, and print the same outputs as those saved in the notebooks."""

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from IPython.display import Markdown
from matplotlib.figure import Figure

ANALYSIS = Path(__file__).resolve().parents[2] / "analysis"


def shown(cells: list[dict[str, Any]]) -> list[str | None]:
    """Run the cells of a notebook. Return each cell's output: a table as Markdown, "" for a figure, otherwise None.

    Figures are not compared, because they may differ between versions of matplotlib.
    """
    names: dict[str, Any] = {}
    outputs: list[str | None] = []
    for cell in cells:
        code = ast.parse("".join(line for line in cell["source"] if not line.startswith("%")))
        last = code.body.pop().value if isinstance(code.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
        exec(compile(code, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last), "<cell>", "eval"), names) if last else None
        outputs.append(value.data if isinstance(value, Markdown) else "" if isinstance(value, Figure) else None)
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ANALYSIS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook_shows_the_stored_results(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ANALYSIS)
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    stored: list[str | None] = []
    for cell in cells:
        outputs = [output["data"] for output in cell["outputs"] if "data" in output]
        texts = ["".join(data["text/markdown"]) for data in outputs if "text/markdown" in data]
        stored.append(texts[0] if texts else "" if any("image/svg+xml" in data for data in outputs) else None)
    with matplotlib.rc_context():
        assert any(stored) and shown(cells) == stored
