"""Objectives can be added up and moved to a device; a user can define an objective for labelled pairs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bgt_core import training
from bgt_core.contracts import Loss, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives import Part, Sum
from bgt_core.objectives.elbo import CrossEntropy, Elbo
from bgt_core.objectives.similarity import AlteredMargin, Composition, Contrast, Margin
from bgt_core.posterior import Point
from bgt_core.recipes import Recipe
from tests.objectives.test_elbo import Says

OUT = Outputs(
    {},
    {},
    [  # type: ignore[arg-type]
        Says("reconstruct/a", [1.0, 2.0]),
        Says("paraphrase/a", [10.0, 20.0]),
        Says("paraphrase/b", [30.0, 40.0]),
        Says("position/a", [100.0, 200.0]),
    ],
)


@pytest.mark.parametrize(
    ("paraphrase", "position", "total"),
    [(1.0, 1.0, 3 + 100 + 300), (0.5, 1.0, 3 + 50 + 300), (1.0, 0.1, 3 + 100 + 30), (0.0, 0.0, 3)],
)
def test_each_part_pays_for_its_roles_and_one_of_weight_0_is_left_out(
    paraphrase: float, position: float, total: float
) -> None:
    parts: dict[str, Part] = {
        "elbo": Elbo(average_predictions=True),  # here, the ELBO has only one prediction, the reconstruction
        "paraphrase": CrossEntropy(("paraphrase",), paraphrase),
        "position": CrossEntropy(("position",), position),
    }
    loss = Sum(parts)(OUT, step=0)
    assert loss.total.item() == pytest.approx(total)
    terms = {name: value.sum().item() for name, value in loss.terms.items()}
    weighted = {"paraphrase/a": 30.0, "paraphrase/b": 70.0} if paraphrase else {}
    weighted |= {"position/a": 300.0} if position else {}
    assert terms == {"reconstruct/a": 3.0, **weighted}
    assert dict(Sum(parts)) == parts  # objectives with the weight 0 are kept


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "nothing to minimise"),
        ({"margin": Margin(weight=0.0)}, "nothing to minimise"),
        ({"margin": Margin(weight=-1.0)}, r"objective\.margin\.weight -1.0 must not be negative"),
        ({"elbo": Elbo(), "again": CrossEntropy(("translate",))}, "elbo and again share the role 'translate'"),
    ],
)
def test_impossible_sums_are_refused(parts: dict[str, Part], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sum(parts)


def points(*langs: str) -> dict[str, Point]:
    return {lang: Point(torch.empty(3, 4, device="meta")) for lang in langs}


@pytest.mark.parametrize("langs", [["en"], ["en", "fr"]])
@pytest.mark.parametrize("objective", [AlteredMargin(), Composition(), Contrast(), Margin(), Margin(both_sides=True)])
def test_a_loss_is_on_the_device_of_its_latents(objective: Callable, langs: list[str]) -> None:
    for altered in ({}, points("fr")):
        out = Outputs(points(*langs), {}, altered=altered if "fr" in langs else {}, composed=[slice(0, 2)])
        loss = objective(out, 0)
        assert loss.total.device.type == "meta"
        assert all(term.device.type == "meta" for term in loss.terms.values())


@dataclass(frozen=True)
class Graded(Part):
    """A user's objective: the squared difference between a pair's cosine and its label."""

    weight: float = 1.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        assert out.batch is not None and out.batch.labels is not None
        one, two = (posterior.mean for posterior in out.semantic.values())
        cost = (torch.cosine_similarity(one, two) - out.batch.labels).square().sum()
        return Loss(cost, {"graded": cost.detach()})


def test_an_objective_learns_from_data_of_its_own(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    """A user can train with `Graded`. The recipe has this objective, and a column of the data has labels."""
    lines = tsv.read_text("utf-8").splitlines()
    text = tmp_path / "graded.tsv"
    text.write_text("".join(f"{line}\t{number % 2}\n" for number, line in enumerate(lines)), "utf-8")
    settings = {"epochs": 4.0, "learning_rate": 0.05, "valid_every": 99, "columns": ["en", "fr", "gold:label"]}
    recipe = replace(tiny("avg", **settings), objective=Sum({"graded": Graded()}))
    rows: list[dict[str, Any]] = []
    config = replace(recipe.train, precision="fp32")
    training.train(replace(recipe, train=config), [text], tmp_path / "run", device="cpu", report=rows.append)
    assert [row["graded"] < 0.5 for row in rows if row["kind"] == "train"] == [True]  # one row: the mean of all updates
