"""Roles of minimal pairs, by a writer whose sentences and likelihoods are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from bgt_core.evaluation.fidelity.roles import LIKELIER, NAMED, RIGHT, RoleScores, measure_roles, places

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.evaluation.fidelity.measures import Score
from bgt_core.evaluation.fidelity.plan import OWN, REFERENCE, SWAPPED
from bgt_core.grammar.roles import ACT, GIVE, role_pairs

PAIRS = role_pairs(3, seed=4)  # both kinds in turn: two of giving, one of an act
ROWS = [(pair.texts["en"][twin], pair.texts["fr"][twin]) for pair in PAIRS for twin in range(2)]
ROW = {text: row for row, texts in enumerate(ROWS) for text in texts}


class Knows:
    """A latent is the number of a sentence; in the manner of another it writes the other, and it fails in row 0."""

    langs = ("en", "fr")

    def __init__(self, *latents: str):
        self.latents = latents
        self.asked: list[tuple[list[int], str]] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        return np.array([[ROW[text]] for text in sentences])

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        rows = latents.get(LANGUAGE, latents[SEMANTIC])[:, 0].tolist()
        self.asked.append((rows, lang))
        return ["nobody" if place == 0 else ROWS[row][lang == "fr"].upper() for place, row in enumerate(rows)]

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        """Right but for pair 1, where twins are equally likely, and row 4, where the twin is likelier."""
        assert list(sentences) == [ROWS[ROW[text]][lang == "fr"] for text in sentences]
        given = latents[SEMANTIC][:, 0]
        own = np.array([ROW[text] for text in sentences]) == given
        return np.where(given // 2 == 1, 7.0, np.where((given == 4) ^ own, -1.0, -3.0))


def share(values: Sequence[float]) -> Score:
    low, high = wilson(sum(values), len(values))
    return Score(*(pytest.approx(100 * each) for each in (np.mean(values), low, high)), len(values))


def test_outputs_are_named_right_and_likelier_by_pairs() -> None:
    said: list[str] = []
    writer = Knows(SEMANTIC, LANGUAGE)
    measured = measure_roles(writer, ["en", "de", "fr"], 3, 4, said.append)  # type: ignore[arg-type]
    plan = [("en", "en", OWN), ("fr", "fr", OWN), ("fr", "en", REFERENCE), ("en", "fr", REFERENCE),
            ("en", "en", SWAPPED), ("fr", "en", SWAPPED), ("en", "fr", SWAPPED), ("fr", "fr", SWAPPED)]  # fmt: skip
    shape = [(one.writing.source_lang, one.writing.lang, one.writing.manner, one.kind) for one in measured]
    assert shape == [(*writing, kind) for writing in plan for kind in (GIVE, ACT)]
    assert said == [f"roles: {lang} from {source} in the manner of {manner}" for source, lang, manner in plan]
    assert [lang for _, lang in writer.asked] == [lang for _, lang, _ in plan]
    for one in measured:
        right = one.writing.manner != SWAPPED  # in the manner of the twin it writes the twin
        order = {GIVE: (0, 2), ACT: (1,)}[one.kind]
        named = [0.5 if pair == 0 else 1.0 for pair in order]
        placed = [(0.5 if pair == 0 else 1.0) * right for pair in order]
        likelier = [{0: 1.0, 1: 0.5, 2: 0.5}[pair] for pair in order]
        assert one.scores == {NAMED: share(named), RIGHT: share(placed), LIKELIER: share(likelier)}


def test_a_sentence_that_is_not_written_is_an_error() -> None:
    class Lazy(Knows):
        def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
            return super().write(latents, lang=lang)[:-1]

    with pytest.raises(ValueError, match=r"shorter|longer"):
        measure_roles(Lazy(SEMANTIC), ["en"], 2, 4, lambda line: None)  # type: ignore[arg-type]


def test_without_a_language_latent_nothing_is_swapped_and_without_a_language_nothing_measured() -> None:
    measured = measure_roles(Knows(SEMANTIC), ["fr"], 1, 4, lambda line: None)  # type: ignore[arg-type]
    assert [(one.writing.manner, one.kind) for one in measured] == [(OWN, GIVE)]
    assert isinstance(measured[0], RoleScores) and measured[0].scores[LIKELIER] == share([1.0])
    for langs, count in ((["de"], 3), (["en"], 0)):
        assert measure_roles(Knows(SEMANTIC), langs, count, 4, lambda line: None) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "place"), [
    ("The KING thanks the nurse.", "right"), ("the nurse, the king", "wrong"), ("the king alone", None),
    ("the nurse alone", None), ("king nurse king", None), ("king nurse nurse", None), ("kings and nurses", None),
])  # fmt: skip
def test_places_are_those_of_two_persons_named_once(text: str, place: str | None) -> None:
    assert places(text, ("king", "nurse")) == place
