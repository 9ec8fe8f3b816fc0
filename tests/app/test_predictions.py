"""Two predictors on the same items, of one model or of two: against what can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from scipy.stats import binomtest

from app import predictions
from bgt_core.errors import DataError
from probes.results.store import SCHEMA, Cell

ITEMS = 40


def table(right: list[bool], sentences: list[str] | None = None) -> pa.Table:
    """Predictions of a predictor "semantic": one seed, one encoder, right where it says so."""
    rows = range(len(right))
    columns = {
        "predictor": ["semantic"] * len(right),
        "encoder": [0] * len(right),
        "seed": [0] * len(right),
        "item": list(rows),
        "sentence": sentences or [f"sentence {row}" for row in rows],
        "label": ["yes"] * len(right),
        "group": list(rows),
        "predicted": ["yes" if each else "no" for each in right],
        "bits": [1.0] * len(right),
        "pvi": [0.0] * len(right),
    }
    return pa.table(columns, schema=SCHEMA)


def test_two_models_are_compared_on_the_same_items() -> None:
    first = table([True] * 30 + [False] * 10)  # 12 are right in the first alone, 2 in the second alone
    second = table([True] * 18 + [False] * 12 + [True] * 2 + [False] * 8)
    both = predictions.paired(first, "semantic", second, "semantic", task="length", lang="en")
    assert (both.first_only, both.second_only, both.items) == (12, 2, ITEMS)
    assert both.points == pytest.approx(100 * 10 / ITEMS)
    assert both.mcnemar_p == pytest.approx(binomtest(2, 14).pvalue)
    assert both.ci_low < both.points < both.ci_high and both.ci_low > 0 and both.p < 0.05
    other_way = predictions.paired(second, "semantic", first, "semantic", task="length", lang="en")
    assert (other_way.points, other_way.mcnemar_p) == (pytest.approx(-both.points), pytest.approx(both.mcnemar_p))


def test_a_model_against_itself_does_not_differ(cell: Cell) -> None:
    same = predictions.paired(
        cell.predictions, "semantic", replace(cell, model="b").predictions, "semantic", task="length", lang="en"
    )
    assert (same.points, same.first_only, same.second_only, same.mcnemar_p) == (0, 0, 0, 1)


def test_the_two_latents_differ_by_what_the_result_says(cell: Cell) -> None:
    both = predictions.paired(cell.predictions, "semantic", cell.predictions, "language", task="length", lang="en")
    assert both.points == pytest.approx(cell.result.difference.points)
    assert both.items == cell.result.rows[0].n_test


def test_other_items_are_refused() -> None:
    others = table([True] * 3, ["a", "b", "c"])
    with pytest.raises(DataError, match="different items"):
        predictions.paired(table([True] * 3), "semantic", others, "semantic", task="length", lang="en")
