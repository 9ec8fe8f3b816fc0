"""The one rule by which a latent shows a property, and which latent tells more."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from app.core.results import gather, reading
from probes.results.store import Cell, write_cells


def test_the_rule_is_that_of_the_table(tables_of: Callable[..., gather.ResultTables]) -> None:
    """Intervals from 0.3 and from 0.6, the most frequent answer at 0.2: no other baseline counts."""
    tables = tables_of()
    scores = tables.scores
    assert reading.by_result(scores, tables.gaps)["shown"].tolist() == ["semantic, language"] * 2
    raised = scores.assign(accuracy=scores["accuracy"].where(scores["latent"] != "majority", 0.4))
    assert set(reading.shown(raised)) == {"language"}
    beside = scores[scores["latent"] == "majority"].assign(latent="length", accuracy=1.0)
    assert set(reading.shown(pd.concat([scores, beside]))) == {"semantic, language"}


@pytest.mark.parametrize(
    ("points", "low", "expected"),
    [(-30.0, 0.6, ["length", "punct-num"]), (30.0, 0.6, []), (-30.0, 0.1, [])],
    ids=("it leads", "it does not", "it leads without showing anything"),
)
def test_a_latent_tells_more_of_what_it_shows_and_leads_on(
    cells_of: Callable[..., list[Cell]],
    tmp_path: Path,
    points: float,
    low: float,
    expected: list[str],
) -> None:
    (tmp_path / "probes").mkdir()
    write_cells(tmp_path / "probes" / "en.parquet", cells_of("model", points=points, low={"language": low}))
    assert reading.leads(tmp_path, "language")["language"] == expected


def test_nothing_is_said_without_stored_probes(tmp_path: Path) -> None:
    assert reading.leads(tmp_path, "language") == {}


def test_the_information_of_the_latents_is_that_of_the_last_report() -> None:
    reports = [
        {"kind": "valid", "kl/en": 90.0, "kl/semantic/en": 90.0},
        {"kind": "valid", "kl/en": 4.0, "kl/fr": 6.0, "kl/semantic/en": 100.0, "kl/semantic/fr": 110.0},
        {"kind": "train", "kl/en": 7.0},
    ]
    assert reading.nats(reports, ("en", "fr")) == (5.0, 110.0)
    many = [{"kind": "valid", "kl/en": 4.0, "kl/fr": 6.0, "kl/semantic": 100.0}]  # of all languages together
    assert reading.nats(many, ("en", "fr")) == (5.0, 105.0)
    assert all(map(math.isnan, reading.nats([], ("en",))))


def test_tasks_are_listed_and_the_rest_counted() -> None:
    assert reading.named([], {}) == ""
    assert reading.named(["length", "tense"], {"tense": " (90%, not 80%)"}) == "length and tense (90%, not 80%)"
    assert reading.named(["length", "tense", "gender", "mine"], {}) == "length, tense, gender of articles and 1 more"
