"""Notebooks run on what is stored, and what they show in the repository is what they show now."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ANALYSIS = Path(__file__).resolve().parents[2] / "analysis"


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """The tables that a notebook shows; pictures may differ with the version of what draws them."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ANALYSIS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebook_shows_the_stored_results(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    NotebookClient(fresh, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ANALYSIS)}}).execute()
    assert texts(stored) and texts(fresh) == texts(stored)
    drawn = [sum("image/svg+xml" in output.get("data", {}) for output in cell.outputs) for cell in code(fresh)]
    assert drawn == [sum("image/svg+xml" in output.get("data", {}) for output in cell.outputs) for cell in code(stored)]


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
