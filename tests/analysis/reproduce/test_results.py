"""Claims and differences, on planted results."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.reproduce import results
from analysis.reproduce.experiments import Claim, Comparison, ExperimentSpec, above, years
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE, BootstrappedScore


def score(*values: float, spread: float = 0.0, seed: int = 0) -> BootstrappedScore:
    """Trainings of these scores, each moved alike by drawing the pairs again."""
    draws = np.random.default_rng(seed).normal(0, 1, 4_000)
    draws = spread * (draws - draws.mean()) / draws.std(ddof=1)
    return BootstrappedScore(np.array(values), np.array(values)[:, None] + draws)


def test_claims_on_planted_results() -> None:
    planted = {"good": 70.0, "poor": 60.0, "middle": 64.0, "same": 70.1}
    scores = {
        name: {"STS average": score(value, value + 0.1, spread=0.2, seed=len(name))} for name, value in planted.items()
    }
    comparison = Comparison(
        "planted",
        [ExperimentSpec(name, "bgt", against="good") for name in [*planted, "absent"]],
        {"good": years(70.0, 74.0), "poor": {"STS average": 66.0}},
        (
            above("good", "poor", "a"),
            above("poor", "good", "b"),
            above("good", "same", "c"),
            above("good", "absent", "d"),
            above("good", "poor", "e", "Hard+"),
            Claim("the middle is nearer to the poor", "f", {"good": 1, "middle": -2, "poor": 1}),
        ),
    )
    rows = results.claims(comparison, scores, 0.95)
    assert [row["verdict"] for row in rows] == [HOLDS, FAILS, NOT_SEPARABLE, NOT_RUN, NOT_RUN, HOLDS]
    assert rows[0]["published"] == 6.0
    assert "published" not in rows[2]
    assert rows[5]["value"] == pytest.approx(2.0)
    assert all(row["p_holm"] >= row["p"] for row in rows if "p" in row)
    gaps = results.differences(comparison, scores, 0.95)
    assert [(row["first"], row["second"]) for row in gaps] == [(name, "good") for name in ("poor", "middle", "same")]
    assert gaps[0]["difference"] == pytest.approx(-10)
