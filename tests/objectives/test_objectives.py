"""Losses are computed where the latents are; torch's device without memory stands for an accelerator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.objectives.altered import AlteredMargin
from bgt_core.objectives.composition import Composition
from bgt_core.objectives.contrast import Contrast
from bgt_core.objectives.margin import Margin, hardest
from bgt_core.posterior import Point


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


def test_others_are_found_on_the_device_of_the_cosines() -> None:
    assert [each.device.type for each in hardest(torch.empty(3, 3, device="meta"))] == ["meta"] * 2
