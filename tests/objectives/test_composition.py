"""The loss of composed parts, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.objectives.composition import Composition
from bgt_core.posterior import Point


def outputs(rng: np.random.Generator, altered: bool) -> tuple[Outputs, dict[str, np.ndarray]]:
    """Four pairs of vectors of 7 units, units 2 to 6 composed, and English sentences altered."""
    vectors = {name: rng.normal(size=(4, 7)) for name in ("en", "fr", "altered")}
    posteriors = {name: Point(torch.from_numpy(value)) for name, value in vectors.items()}
    meaning = {lang: posteriors[lang] for lang in ("en", "fr")}
    others = {"en": posteriors["altered"]} if altered else {}
    unit = {
        name: value[:, 2:6] / np.linalg.norm(value[:, 2:6], axis=1, keepdims=True) for name, value in vectors.items()
    }
    return Outputs(meaning, {}, altered=others, composed=slice(2, 6)), unit


@pytest.mark.parametrize("altered", [False, True])
def test_each_composed_part_picks_its_translation_out_of_the_batch(altered: bool) -> None:
    out, unit = outputs(np.random.default_rng(0), altered)
    expected = 0.0
    for source, target in (("en", "fr"), ("fr", "en")):
        candidates = [unit[target], *([unit["altered"]] if altered and target == "en" else [])]
        for row in range(4):
            cosines = np.concatenate([part @ unit[source][row] for part in candidates])
            expected += np.log(np.exp(cosines / 0.5).sum()) - cosines[row] / 0.5
    loss = Composition(weight=2.0, temperature=0.5)(out, 0)
    assert loss.terms["composition"].item() == pytest.approx(expected, rel=1e-5)
    assert loss.total.item() == pytest.approx(2 * expected, rel=1e-5)


def test_one_column_has_nothing_to_compare() -> None:
    out = Outputs({"en": Point(torch.randn(3, 5))}, {}, composed=slice(0, 5))
    assert Composition()(out, 0).total == 0


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(BgtError, match=r"composition.temperature 0.0 must be above 0"):
        Composition(temperature=0.0)
