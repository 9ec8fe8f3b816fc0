"""Transfer scores by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.transfer import transfer_scores
from bgt_core.vectors.compare import ComparesByCosine


class Letters(ComparesByCosine):
    """How often "a" and "b" come."""

    langs, latents, fingerprint = ("en",), (SEMANTIC, "language"), ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "language") -> np.ndarray:
        assert (lang, latent) == ("en", SEMANTIC)
        return np.array([[text.count("a"), text.count("b")] for text in sentences], dtype=np.float32)


def test_similarities_and_the_correlation_of_lengths_by_hand() -> None:
    outputs, sources, styles = ["a a", "b", "a b b"], ["a", "a", "a b"], ["b b", "a b", "b b b b"]
    to_source, to_style, length = transfer_scores(Letters(), outputs, sources, styles, lang="en")
    assert to_source == pytest.approx((1 + 0 + 3 / np.sqrt(10)) / 3)
    assert to_style == pytest.approx((0 + 1 / np.sqrt(2) + 2 / np.sqrt(5)) / 3)
    assert length == pytest.approx(np.corrcoef([2, 1, 3], [2, 2, 4])[0, 1])


@pytest.mark.parametrize("constant", [0, 1])
def test_lengths_that_are_all_alike_correlate_with_nothing(constant: int) -> None:
    texts = [["a a", "b b"], ["a", "b b"]]
    to_source, _, length = transfer_scores(Letters(), texts[constant], ["a", "b"], texts[1 - constant], lang="en")
    assert length == 0 and to_source == pytest.approx(1)
