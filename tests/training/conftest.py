"""Fixtures for tests of runs: an uninterrupted run, which is trained once per session."""

from pathlib import Path

import pytest

from bgt_core import checkpoint
from bgt_core.recipes import Recipe


@pytest.fixture
def whole(small_run: Path) -> Path:
    """An uninterrupted run in one process, on the text of `tsv`."""
    return small_run / "run"


@pytest.fixture
def recipe(whole: Path) -> Recipe:
    """The recipe of the run."""
    return checkpoint.load(whole).recipe
