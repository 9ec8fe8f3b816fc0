"""The points in figures are at the values of the table rows from which the figures are drawn."""

from typing import Any

from matplotlib.figure import Figure

from analysis.reproduce import figures
from analysis.reproduce.comparisons import AVERAGE, Comparison, ExperimentSpec

COMPARISON = Comparison(
    "Three",
    [ExperimentSpec("BGT", "bgt", seeds=(1, 2)), ExperimentSpec("SP", "sp"), ExperimentSpec("BiLSTM", "bilstm")],
    {"BGT": {AVERAGE: 70.0}, "BiLSTM": {AVERAGE: 60.0}},
)


def score(system: str, seed: str, value: float, published: float | None = None) -> dict[str, Any]:
    about = {"system": system, "seed": seed, "measure": AVERAGE, "published": published}
    return about | {"value": value, "ci_low": value - 1, "ci_high": value + 2}


SCORES = [
    score("BGT", "mean", 56.0, 71.5),  # the paper's average is 71.5
    score("BGT", "1", 55.0, 71.5),
    score("BGT", "2", 57.0, 71.5),
    score("SP", "mean", 60.0),
    score("SP", "1", 60.0),
    {**score("SP", "mean", 20.0), "measure": "Hard+"},
]
CLAIMS = [
    {"claim": "a", "verdict": "does not hold", "published": 1.5, "value": -4.0, "ci_low": -5.0, "ci_high": -3.0},
    {"claim": "b", "verdict": "not run", "published": 2.5, "value": None, "ci_low": None, "ci_high": None},
]


def points(figure: Figure, marker: str) -> list[tuple[float, float]]:
    """Return (x, y) of all points drawn with this kind of marker; y is the index of a point's row."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_systems_and_claims_are_drawn_at_their_numbers() -> None:
    figure = figures.systems(COMPARISON, {"scores": SCORES})
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["BGT", "SP", "BiLSTM"]
    assert points(figure, "o") == [(56, 0), (60, 1)]  # the third system is missing, because it was not trained
    assert points(figure, "D") == [(71.5, 0), (60, 2)]  # published scores: BGT's from SCORES, BiLSTM's from COMPARISON
    assert [x for x, _ in points(figure, ".")] == [55, 57, 60]
    assert points(figure, "None") == [(55, 0), (58, 0), (59, 1), (62, 1)]  # ends of the intervals
    figure = figures.systems(COMPARISON, {"scores": SCORES}, "Hard+")
    assert points(figure, "o") == [(20, 1)] and points(figure, "D") == []
    figure = figures.verdicts({"claims": CLAIMS})
    assert points(figure, "X") == [(-4, 0)] and points(figure, "D") == [(1.5, 0), (2.5, 1)]
