"""Fixtures with random syntax trees, and a function that writes them to a file."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

RULES: dict[str, list[list[str]]] = {
    "S": [["NP", "VP", "."], ["S", "CC", "S"]],
    "NP": [["DT", "NN"], ["NP", "PP"], ["NN"], ["NP"]],
    "VP": [["VB"], ["VB", "NP"], ["VP", "PP"]],
    "PP": [["IN", "NP"]],
}
WORDS = {tag: [f"{tag.lower()}{number}" for number in range(6)] for tag in ("DT", "NN", "VB", "IN", "CC")}
WORDS["."] = [".", "?"]


def bracketed(label: str, rng: Random, room: int = 5) -> str:
    """Draw a random tree in bracket notation, with the root `label`; `room` limits its depth."""
    if label not in RULES:
        return f"({label} {rng.choice(WORDS[label])})"
    rule = rng.choice(RULES[label]) if room > 0 else RULES[label][0]
    return f"({label} {' '.join(bracketed(part, rng, room - 1) for part in rule)})"


@pytest.fixture(scope="session")
def trees() -> list[str]:
    """200 different random trees in bracket notation."""
    rng = Random(5)
    drawn: dict[str, None] = {}
    while len(drawn) < 200:
        drawn[f"(ROOT {bracketed('S', rng)})"] = None
    return list(drawn)


@pytest.fixture
def treebank(tmp_path: Path) -> Callable[..., Path]:
    """treebank("a.mrg", ["(S ...)"]): write trees to a file; return its path."""

    def write(name: str, trees: list[str]) -> Path:
        (tmp_path / name).write_text("\n".join(trees), "utf-8")
        return tmp_path / name

    return write
