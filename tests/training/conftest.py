"""Fixtures for tests of training runs. All tests use one uninterrupted run, so it is trained only once."""

from pathlib import Path

import pytest

from bgt_core import checkpoint
from bgt_core.recipes import Recipe


@pytest.fixture
def whole(small_run: Path) -> Path:
    """An uninterrupted run in one process, on the same text as the fixture `tsv`."""
    return small_run / "run"


@pytest.fixture
def recipe(whole: Path) -> Recipe:
    """The recipe of the uninterrupted run."""
    return checkpoint.load(whole).recipe
