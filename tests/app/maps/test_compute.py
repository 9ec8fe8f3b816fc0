"""A selection compared with the rest: hand-computed numbers, and published intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from app.core import rows
from app.maps import compute


@pytest.fixture
def table() -> pd.DataFrame:
    english = ["Is the train late?", "Which train?", "A train to Paris?", "I like tea."]
    french = ["Le thé est bon.", "Il aime le thé.", "Nous buvons.", "Oui."]
    return pd.concat([rows.table(english, "en", english), rows.table(french, "fr", french)], ignore_index=True)


def test_translations_coincide_within_the_width_of_a_mark(table: pd.DataFrame) -> None:
    """The map is 10 wide, so a mark is 0.15 wide. The pairs are 0, 0.1, 0.2 and 5 apart. A star has no translation."""
    own = rows.typed("A star.", "en", 0)[0].assign(x=0.0, y=0.0)
    placed = table.assign(x=[0, 1, 2, 10, 0, 1, 2.2, 5], y=[0, 0, 0, 0, 0, 0.1, 0, 0])
    assert compute.coincide(pd.concat([placed, own])) == (2, 4)


def test_a_selection_is_described_against_the_rest(table: pd.DataFrame) -> None:
    chosen = np.arange(8) < 3
    lines = compute.compared(table, chosen).set_index("Measure")
    assert lines.loc["Sentences", ["Selected", "Rest"]].tolist() == ["3", "5"]
    assert lines.loc["Words in a sentence", ["Selected", "Rest"]].tolist() == ["3.3", "2.8"]
    assert lines.loc["Closing mark: question", ["Selected", "Rest"]].tolist() == ["100%", "0%"]
    assert "Closing mark: exclamation" not in lines.index
    assert lines.loc["English", "Difference"].startswith("+80 [")
    assert lines.loc["Words that stand out", "Selected"] == "train"


@pytest.mark.parametrize("count", [0, 1, 8])
def test_there_may_be_nothing_to_compare(table: pd.DataFrame, count: int) -> None:
    lines = compute.compared(table, np.arange(8) < count).set_index("Measure")
    assert not lines.loc["Words in a sentence", "Difference"]


def test_intervals_are_welchs_and_newcombes() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(5, 1, 9), rng.normal(3, 2, 30)
    low, high = ttest_ind(left, right, equal_var=False).confidence_interval()
    assert compute.mean_difference(left, right)[2] == f"{left.mean() - right.mean():+.1f} [{low:.1f}, {high:.1f}]"
    has = np.repeat([True, False, True, False], [56, 14, 48, 32])  # Newcombe (1998), table II: 56/70 against 48/80
    assert compute.share_difference(has, np.arange(150) < 70) == ("80%", "60%", "+20 [5, 33]")


def test_whole_words_come_before_parts_of_words() -> None:
    table = rows.table(["The train is late.", "Un entraînement", "She is training.", "TRAIN!", "(a+b)"], "en", None)
    assert rows.matching(table, "train") == ["own0", "own3"]
    assert rows.matching(table, "rain") == ["own0", "own2", "own3"]
    assert rows.matching(table, "(a+b") == ["own4"]
    assert rows.matching(table, ".") == ["own0", "own2"]
    assert rows.matching(table, "plane") == []
