"""Fixtures for tests of training. All tests share one training run, so that it is trained only once."""

from pathlib import Path

import pytest

from bgt_core import checkpoint
from bgt_core.recipes import Recipe


@pytest.fixture
def whole(small_run: Path) -> Path:
    """A training run in one process without interruption, on the same text as the fixture `tsv`."""
    return small_run / "run"


@pytest.fixture
def recipe(whole: Path) -> Recipe:
    """The recipe of the uninterrupted run."""
    return checkpoint.load(whole).recipe
