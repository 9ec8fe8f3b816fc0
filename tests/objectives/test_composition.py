"""The loss of composed parts, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.objectives.composition import Composition
from bgt_core.posterior import Point

PARTS = slice(2, 5), slice(5, 7)


def outputs(rng: np.random.Generator, altered: bool) -> tuple[Outputs, dict[str, np.ndarray]]:
    """Four pairs of vectors of 7 units, two parts of them composed, and English sentences altered."""
    vectors = {name: rng.normal(size=(4, 7)) for name in ("en", "fr", "altered")}
    posteriors = {name: Point(torch.from_numpy(value)) for name, value in vectors.items()}
    meaning = {lang: posteriors[lang] for lang in ("en", "fr")}
    return Outputs(meaning, {}, altered={"en": posteriors["altered"]} if altered else {}, composed=PARTS), vectors


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("altered", [False, True])
def test_each_composed_part_picks_its_translation_out_of_the_batch_and_of_altered_sentences(altered: bool) -> None:
    out, vectors = outputs(np.random.default_rng(0), altered)
    expected = 0.0
    for part in PARTS:
        units = {name: unit(value[:, part]) for name, value in vectors.items()}
        own = (units["en"] * units["altered"]).sum(1) if altered else np.zeros(0)
        expected += np.log1p(np.exp((own - 0.3) / 0.5)).sum()
        for source, target in (("en", "fr"), ("fr", "en")):
            candidates = np.concatenate([units[target], *([units["altered"]] if altered else [])])
            for row in range(4):
                cosines = candidates @ units[source][row]
                expected += np.log(np.exp(cosines / 0.5).sum()) - cosines[row] / 0.5
    loss = Composition(temperature=0.5, apart=0.3)(out, 0)
    assert loss.terms["composition"].item() == pytest.approx(expected, rel=1e-5)
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)


def test_one_column_has_nothing_to_compare() -> None:
    out = Outputs({"en": Point(torch.randn(3, 5))}, {}, composed=[slice(0, 5)])
    assert Composition()(out, 0).total == 0


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(BgtError, match=r"composition.temperature 0.0 must be above 0"):
        Composition(temperature=0.0)
