"""How far two languages share their writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from bgt_core.data.overlap import letter_overlap, overlap, piece_overlap
from bgt_core.errors import DataError

ENGLISH = ("dog", "cat", "boy", "teacher", "horse", "garden", "kettle", "window", "ladder", "morning")
FRENCH = ("chien", "chat", "garçon", "professeur", "cheval", "jardin", "lapin", "chemin", "bateau", "matin")


def test_by_hand() -> None:
    """a: min(1/2, 1/4), b: min(1/2, 3/4)."""
    assert overlap(Counter("ab"), Counter("abbb")) == pytest.approx(0.75)


def test_letters_count_whatever_their_case_and_nothing_else_does() -> None:
    assert letter_overlap(["Aa 1!"], ["a, a?"]) == 1
    assert letter_overlap(["abc"], ["где"]) == 0


@pytest.mark.parametrize("measure", [letter_overlap, lambda *sides: piece_overlap(*sides, vocab_size=34)])
def test_a_language_overlaps_with_itself_wholly_and_with_another_either_way_alike(measure: Callable) -> None:
    english = [f"the {one} sees the {other}" for one in ENGLISH for other in ENGLISH]
    french = [f"le {one} voit le {other}" for one in FRENCH for other in FRENCH]
    assert measure(english, english) == pytest.approx(1)
    assert 0 < measure(english, french) < 1
    assert measure(english, french) == pytest.approx(measure(french, english))


def test_nothing_to_count() -> None:
    with pytest.raises(DataError, match="has no letters"):
        letter_overlap(["12"], ["douze"])
