"""What a result shows: tables, records, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic, compare
from bgt_core.evaluation.result import Result


class Key(NamedTuple):
    score: str
    pairs: int


def of_values(names: Sequence[str], values: dict[str, np.ndarray], **how: Any) -> Statistic:
    """Scores that don't depend on what is drawn."""
    made = {Key(name, 9): np.asarray(value) for name, value in values.items()}
    return Statistic(
        systems=names,
        scores=lambda weights: {key: np.tile(value, (len(weights[0]), 1)) for key, value in made.items()},
        samples=[ItemSample(9)],
        **how,
    )


@pytest.fixture
def result() -> Result:
    statistic = of_values(
        ["a", "b"],
        {"x": [1.0, 2.0], "y": [0.5, np.nan]},
        about="made",
        warnings=["odd"],
        counts={"pairs": 9},
        numbers={Key("limit", 9): [0.12345, None]},
    )
    return compare(statistic, resamples=100, level=0.9, seed=3)


def test_a_result_says_how_it_was_made(result: Result) -> None:
    assert (result.level, result.resamples, result.seed, result.warnings) == (0.9, 100, 3, ["odd"])
    assert result.about == "made; 90% intervals from 100 resamples; differences: paired, p with Holm's correction"
    assert compare(of_values(["a"], {"x": [1.0]}), resamples=100).about == "; 95% intervals from 100 resamples"
    hits = {Key("h", 2): np.ones((1, 2))}
    assert compare(Statistic(systems=["a"], hits=hits), resamples=100).about == "; 95% intervals Wilson's"


def test_a_table_has_systems_or_a_part_of_the_names_for_columns(result: Result) -> None:
    table = result.table()
    assert table.columns == ["score", "pairs", "a", "b"]
    assert table.lines() == [
        ["x", "9", "1.0 [1.0, 1.0] =", "2.0 [2.0, 2.0] ="], ["y", "9", "0.5 [0.5, 0.5]", ""],
        ["limit", "9", "0.1235", ""],
    ]  # fmt: skip
    turned = result.table("score")
    assert turned.columns == ["system", "x", "y", "limit"]
    assert turned.lines() == [["a", "1.0 [1.0, 1.0] =", "0.5 [0.5, 0.5]", "0.1235"], ["b", "2.0 [2.0, 2.0] =", "", ""]]
    gaps = result.difference_table()
    assert gaps.columns == ["score", "difference", "points", "p", "p (Holm)"]
    assert gaps.lines() == [["x", "a - b", "-1.0 [-1.0, -1.0]", "1", "1"]]


def test_records_and_json_have_every_number(result: Result) -> None:
    own = {"value": 1.0, "ci_low": 1.0, "ci_high": 1.0, "mark": "tied"}
    assert result.records()[0] == {"score": "x", "pairs": 9, "system": "a", **own}
    assert result.records()[-1] == {"score": "limit", "pairs": 9, "system": "a", "value": 0.12345}
    document = json.loads(json.dumps(result.as_dict()))
    assert (document["schema"], document["counts"], document["warnings"]) == ("bgt-evaluate/1", {"pairs": 9}, ["odd"])
    assert document["scores"][0] == {"score": "x", "pairs": 9, "systems": {"a": own, "b": {
        "value": 2.0, "ci_low": 2.0, "ci_high": 2.0, "mark": "tied"}}}  # fmt: skip
    assert document["differences"] == [
        {"score": "x", "pairs": 9, "first": "a", "second": "b", "value": -1.0, "ci_low": -1.0, "ci_high": -1.0,
         "mark": "", "p": 1.0, "p_holm": 1.0}
    ]  # fmt: skip


def test_one_value_is_found_by_its_name(result: Result) -> None:
    assert (result.value(("x",), "b"), result.value(("limit", 9), "a")) == (2.0, 0.12345)
    assert np.isnan(result.value(("y",), "b"))
    for key, system in ((("x",), None), ((), "a"), (("z",), "a"), (("x",), "c")):
        with pytest.raises(UsageError, match="name one of each"):
            result.value(key, system)
