"""A probe that tells two languages apart."""

from __future__ import annotations

import numpy as np

from probes.measures.language import language_probe_accuracy


def test_languages_are_told_apart_only_where_they_differ() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 400, 5)).astype(np.float32)
    accuracy, low, high = language_probe_accuracy(left, right)
    assert low < 0.5 < high and low < accuracy < high  # 160 held-out sentences of one distribution
    assert language_probe_accuracy(left, right + 20)[0] == 1
