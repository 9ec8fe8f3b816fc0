"""A card's figures, on small files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bgt_core.grammar import Pair, pairs
from probes.cli import card


@pytest.fixture
def measured(
    saved: Path, grammar: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> Callable[..., tuple[str, str]]:
    """measured(*more arguments): what the command prints on stdout and stderr."""
    year = tmp_path / "sts" / "2013"
    year.mkdir(parents=True)
    alike = [f"5\t{pair.texts['en']}\t{pair.texts['en']}\n" for pair in grammar[:10]]
    unlike = [
        f"0\t{one.texts['en']}\t{two.texts['en']}\n" for one, two in zip(grammar[20:30], grammar[40:50], strict=True)
    ]
    (year / "SMT.tsv").write_text("".join(alike + unlike), "utf-8")
    lines = "".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in grammar[:12])
    (tmp_path / "pairs.tsv").write_text(lines, "utf-8")
    (tmp_path / "text.txt").write_text("".join(pair.texts["en"] + "\n" for pair in pairs(400, seed=9)), "utf-8")
    (tmp_path / "about.json").write_text('{"command": "made by hand"}', "utf-8")
    paths = {"--sts": "sts", "--retrieval": "pairs.tsv", "--sentences": "text.txt", "--about": "about.json"}
    files = [word for option, name in paths.items() for word in (option, str(tmp_path / name))]

    def call(*more: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["card", "--model", str(saved), "--years", "2013", *files, *more])
        card.main()
        return capsys.readouterr()

    return call


def test_a_card_holds_every_figure_and_what_it_was_told(measured: Callable[..., tuple[str, str]]) -> None:
    found = json.loads(measured("--transfers", "3")[0])
    scores = found["scores"]
    similarity = scores["STS 2013-2013, Pearson x 100"]
    assert similarity["semantic"] > 90  # gold is 5 where both sentences are the same
    assert similarity["baseline"] > 90
    assert 0 <= scores["Retrieval en to fr, %"]["semantic"] <= 100
    assert set(scores["Length probe, accuracy %"]) == {"semantic", "language", "baseline"}
    assert "with SMT" in found["protocol"][0]["how"]
    assert {row["latent"] for row in found["probes"]} > {"semantic", "language", "majority"}
    assert found["command"] == "made by hand"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--transfers", "7"), "needs twice as many"),
        (("--transfers", "3", "--sentences", "absent.txt"), "absent.txt: can't be read"),
        (("--about", "absent.json"), "absent.json: no readable JSON"),
    ],
)
def test_bad_input_is_one_line(
    more: tuple[str, ...], message: str, measured: Callable[..., tuple[str, str]], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as left:
        measured(*more)
    assert left.value.code in (3, 4)
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
