"""A fixture that lists the files in the working folder."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def names() -> Callable[[], list[str]]:
    """names(): the names of the files in the working folder, sorted."""
    return lambda: sorted(path.name for path in Path().iterdir())
