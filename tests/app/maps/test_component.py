"""The selection that is sent to the maps in the browser and back."""

from __future__ import annotations

import numpy as np
import pytest

from app.maps import component


@pytest.mark.parametrize("count", [1, 8, 13])
def test_a_selection_comes_back_as_it_was_sent(count: int) -> None:
    mask = np.random.default_rng(count).random(count) < 0.5
    mask[0] = True
    assert component.unpacked(component.packed(mask), count).tolist() == mask.tolist()
    assert component.packed(mask & False) == "" and not component.unpacked("", count).any()
