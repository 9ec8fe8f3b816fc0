"""Scores of the task minimal-pairs are those computed by hand, for a model with known outputs and likelihoods."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import UsageError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.minimal_pairs import LIKELIER, NAMED, RIGHT, MinimalPairs, places
from bgt_core.evaluation.writing import OWN, REFERENCE, SWAPPED
from bgt_core.grammar import ACT, GIVE, role_pairs

PAIRS = role_pairs(3, seed=4)  # the kinds of these pairs are GIVE, ACT, GIVE
ROWS = [(pair.texts["en"][twin], pair.texts["fr"][twin]) for pair in PAIRS for twin in range(2)]
ROW = {text: row for row, texts in enumerate(ROWS) for text in texts}


class Knows:
    """A fake model. A sentence's latent is its row in `ROWS`; `write` returns "nobody", then style sentences."""

    langs = ("en", "fr")

    def __init__(self, *latents: str):
        self.latents = latents
        self.asked: list[tuple[list[int], str]] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return np.array([[ROW[text]] for text in sentences])

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        rows = latents.get(LANGUAGE, latents[SEMANTIC])[:, 0].tolist()
        self.asked.append((rows, lang))
        return ["nobody" if place == 0 else ROWS[row][lang == "fr"].upper() for place, row in enumerate(rows)]

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        """Given its own latent, a sentence is likelier than its twin; pair 1 has ties, and row 4 the reverse."""
        assert list(sentences) == [ROWS[ROW[text]][lang == "fr"] for text in sentences]
        given = latents[SEMANTIC][:, 0]
        own = np.array([ROW[text] for text in sentences]) == given
        return np.where(given // 2 == 1, 7.0, np.where((given == 4) ^ own, -1.0, -3.0))


def measured(writer: Knows, langs: str = "en,fr", count: int = 3) -> Result:
    return evaluate(MinimalPairs(langs, count), {"m": writer}, role_pairs(count, seed=4))


def test_outputs_are_named_right_and_likelier_by_pairs() -> None:
    writer = Knows(SEMANTIC, LANGUAGE)
    result = measured(writer)
    plan = [("en", "en", OWN), ("fr", "fr", OWN), ("fr", "en", REFERENCE), ("en", "fr", REFERENCE),
            ("en", "en", SWAPPED), ("fr", "en", SWAPPED), ("en", "fr", SWAPPED), ("fr", "fr", SWAPPED)]  # fmt: skip
    assert result.about.startswith("3 minimal pairs of the grammar, beam 4; ")
    of = [(lang, OWN if style == OWN else source, style) for source, lang, style in plan]
    assert set(result.scores) == {
        (*writing, kind, measure, pairs)
        for writing in of for kind, pairs in ((GIVE, 2), (ACT, 1)) for measure in (NAMED, RIGHT, LIKELIER)
    }  # fmt: skip
    assert [lang for _, lang in writer.asked] == [lang for _, lang, _ in plan]
    for key, (cell,) in result.scores.items():
        right = key.style_of != SWAPPED  # for SWAPPED, the style sentence is the pair's other sentence
        order = {GIVE: (0, 2), ACT: (1,)}[key.roles]
        expected = {
            NAMED: [0.5 if pair == 0 else 1.0 for pair in order],
            RIGHT: [(0.5 if pair == 0 else 1.0) * right for pair in order],
            LIKELIER: [{0: 1.0, 1: 0.5, 2: 0.5}[pair] for pair in order],
        }[key.measure]
        low, high = wilson(sum(expected), len(expected))
        assert cell[:3] == pytest.approx((100 * np.mean(expected), 100 * low, 100 * high))


def test_without_a_language_latent_nothing_is_swapped() -> None:
    alone = measured(Knows(SEMANTIC), "fr", 1)
    assert {(key.style_of, key.roles) for key in alone.scores} == {(OWN, GIVE)}
    both = evaluate(
        MinimalPairs("fr", 1), {"a": Knows(SEMANTIC), "b": Knows(SEMANTIC, LANGUAGE)}, role_pairs(1, seed=4)
    )
    swapped = [cells for key, cells in both.scores.items() if key.style_of == SWAPPED]
    assert swapped and all(cells[0] is None and cells[1] is not None for cells in swapped)


def test_a_language_that_the_grammar_lacks_is_refused() -> None:
    assert len(MinimalPairs().load([], seed=3)) == 100 and MinimalPairs(count=3).load([], seed=4) == PAIRS
    with pytest.raises(UsageError, match="langs de: expected en, fr or en,fr"):
        measured(Knows(SEMANTIC), "de")
    with pytest.raises(UsageError, match=r"^data must be left out"):
        MinimalPairs().load([Path("a")], seed=0)


@pytest.mark.parametrize(("text", "place"), [
    ("The KING thanks the nurse.", "right"), ("the nurse, the king", "wrong"), ("the king alone", None),
    ("king nurse nurse", None), ("kings and nurses", None),
])  # fmt: skip
def test_places_need_two_persons_that_are_named_once(text: str, place: str | None) -> None:
    assert places(text, ("king", "nurse")) == place
