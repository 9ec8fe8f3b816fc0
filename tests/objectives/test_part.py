"""An objective from outside the package, in one file: the example."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import torch

import bgt_core
from bgt_core import recipes
from bgt_core.contracts import Outputs
from bgt_core.errors import UsageError
from bgt_core.grammar import pairs
from bgt_core.objectives.part import Part, check_compared, total
from bgt_core.posterior import Point

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "your_objective.py"


def outputs(**means: list[list[float]]) -> Outputs:
    return Outputs({lang: Point(torch.tensor(rows)) for lang, rows in means.items()}, {}, [])


def test_the_distance_by_hand() -> None:
    distance: Part = runpy.run_path(str(EXAMPLE))["Distance"]()
    loss = distance(outputs(en=[[1.0, 2.0], [0.0, 0.0]], fr=[[0.0, 0.0], [3.0, 4.0]]), step=0)
    assert loss.total.item() == 1 + 4 + 9 + 16
    assert distance(outputs(en=[[1.0, 2.0]]), step=0).total.item() == 0


def test_a_recipe_learns_by_an_objective_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = runpy.run_path(str(EXAMPLE))
    monkeypatch.setitem(recipes.RECIPES, "sp-distance", example["sp_with_distance"])
    text = tmp_path / "pairs.tsv"
    text.write_text("".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in pairs(200)), "utf-8")
    settings = {**example["SMALL"], "epochs": 2.0, "valid_every": 1, "objective.distance.weight": 3.0}
    last = bgt_core.train("sp-distance", [text], tmp_path / "run", overrides=settings, columns=["en", "fr"])
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    terms = [row for row in rows if "distance" in row]
    assert terms
    for row in terms:  # the loss is the weighted sum
        assert row["loss"] == pytest.approx(row["margin"] + 3 * row["distance"], rel=1e-5)
    assert bgt_core.load(last).embed(["The dog sleeps."], lang="en").shape == (1, 64)


def test_costs_are_added_and_two_columns_are_needed() -> None:
    assert total(outputs(en=[[1.0]]), [torch.tensor(2.0), torch.tensor(3.0)]).item() == 5
    with pytest.raises(UsageError, match="similarity needs two columns"):
        check_compared(["en"])
