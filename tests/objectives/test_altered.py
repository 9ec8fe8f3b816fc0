"""The margin of altered sentences, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.objectives.altered import AlteredMargin
from bgt_core.posterior import Point


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def test_translations_are_nearer_to_each_other_than_an_altered_one_is_to_either() -> None:
    rng = np.random.default_rng(0)
    english, french, german, altered = rng.normal(size=(4, 6, 5))
    meaning = {"en": english, "fr": french, "de": german}
    points = {lang: Point(torch.from_numpy(vectors)) for lang, vectors in meaning.items()}
    out = Outputs(points, {}, altered={"fr": Point(torch.from_numpy(altered))})
    expected = sum(
        max(0.0, 0.3 - cosine(other[row], french[row]) + cosine(either[row], altered[row]))
        for other in (english, german)
        for either in (other, french)
        for row in range(6)
    )
    loss = AlteredMargin(margin=0.3)(out, 0)
    assert loss.terms["altered"].item() == pytest.approx(expected, rel=1e-5)
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)


def test_without_altered_sentences_it_costs_nothing() -> None:
    loss = AlteredMargin()(Outputs({"en": Point(torch.randn(3, 4))}, {}), 0)
    assert loss.total == 0 and loss.terms == {}


@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_a_margin_that_no_cosines_differ_by_is_refused(margin: float) -> None:
    with pytest.raises(BgtError, match=rf"altered.margin {margin} must be above 0 and below 2"):
        AlteredMargin(margin=margin)
