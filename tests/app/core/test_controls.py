"""Messages of every page about typed text: it is empty, too long, or in another language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from app.core import controls

ENGLISH = {f"one_{side}_lang": "English" for side in ("left", "right")}
FRENCH = "Il fait très froid ce matin dans notre maison."


@pytest.mark.parametrize(
    ("page", "link", "label", "control", "field"),
    [
        ("main", {"sentence": FRENCH}, "It is French", "language", "sentence"),
        ("pairs", {"left": "Yes.", "right": FRENCH, **ENGLISH}, "Right is French", "one_right_lang", "right"),
        ("rewrite", {"meanings_en": FRENCH}, "The text of meanings is French", "mlang", "meanings_fr"),
        ("rewrite", {"styles_en": FRENCH, "glang": "English"}, "The text of styles is French", "glang", "styles_fr"),
    ],
)
def test_a_button_makes_it_the_language_of_the_text(
    opened: Callable[..., Any], page: str, link: dict[str, str], label: str, control: str, field: str
) -> None:
    app = opened(page, **link).press(label)
    assert app.session_state[control] == "fr" and app.session_state[field] == FRENCH
    assert not [box.value for box in app.warning if "This looks like French" in box.value]
    assert not [button.label for button in app.button if button.label.endswith("is French")]


@pytest.mark.parametrize(
    ("longest", "width", "lines"),
    [("", 200, 0), ("a" * 20, 200, 0), ("word " * 20, 400, 3), ("word " * 20, 112, 9), ("単語" * 25, 400, 3)],
)
def test_rows_are_as_high_as_the_longest_sentence_needs(longest: str, width: int, lines: int) -> None:
    table = pd.DataFrame({"Left": ["short", longest], "Right": ["short", "short"]})
    assert controls.row_height(table, width) == (lines * controls.LINE or None)
    assert controls.row_height(table.assign(Right="word " * 400), width) == controls.MOST_LINES * controls.LINE
