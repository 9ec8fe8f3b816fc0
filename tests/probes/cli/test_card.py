"""A card's figures, on small files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bgt_core.grammar import Pair, pairs
from probes.cli import card
from tests.evaluation.tasks.test_fidelity import Stub, copies


@pytest.fixture
def measured(
    saved: Path, grammar: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> Callable[..., tuple[int, str, str]]:
    """measured(*more arguments): the exit code, and what the command prints on stdout and stderr."""
    year = tmp_path / "sts" / "2013"
    year.mkdir(parents=True)
    alike = [f"5\t{pair.texts['en']}\t{pair.texts['en']}\n" for pair in grammar[:10]]
    different = [
        f"0\t{one.texts['en']}\t{two.texts['en']}\n" for one, two in zip(grammar[20:30], grammar[40:50], strict=True)
    ]
    (year / "SMT.tsv").write_text("".join(alike + different), "utf-8")
    lines = "".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in grammar[:12])
    (tmp_path / "pairs.tsv").write_text(lines, "utf-8")
    (tmp_path / "text.txt").write_text("".join(pair.texts["en"] + "\n" for pair in pairs(400, seed=9)), "utf-8")
    (tmp_path / "about.json").write_text('{"command": "made by hand"}', "utf-8")
    paths = {"--sts": "sts", "--retrieval": "pairs.tsv", "--sentences": "text.txt", "--about": "about.json"}
    files = [word for option, name in paths.items() for word in (option, str(tmp_path / name))]

    def call(*more: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["card", "--model", str(saved), "--years", "2013", *files, *more])
        with pytest.raises(SystemExit) as end:
            card.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return call


@pytest.mark.slow
def test_a_card_holds_every_figure_and_what_it_was_told(measured: Callable[..., tuple[int, str, str]]) -> None:
    document = json.loads(measured("--transfers", "3")[1])
    scores = document["scores"]
    similarity = scores["STS 2013, Pearson x 100"]
    assert similarity["semantic"] > 80  # gold is 5 where both sentences are the same
    assert similarity["baseline"] > 90
    assert 0 <= scores["Retrieval en to fr, %"]["semantic"] <= 100
    assert set(scores["Length probe, accuracy %"]) == {"semantic", "language", "baseline"}
    assert "with SMT" in document["protocol"][0]["how"]
    assert {row["latent"] for row in document["probes"]} > {"semantic", "language", "majority"}
    assert document["command"] == "made by hand"
    assert [(row["written"], row["style of"], row["by"]) for row in document["fidelity"]][:2] == [
        ("en", "its own", "model"),
        ("en", "its own", "source copied"),
    ]
    assert document["fidelity"][1]["chrF"] == "100.0 [100.0, 100.0]"
    assert len(document["fidelity"]) == len(document["kept"]) == 16
    assert {row["roles"] for row in document["roles"]} == {"giver and receiver", "subject and object"}


def test_translations_of_more_than_two_languages(tmp_path: Path) -> None:
    (tmp_path / "three.tsv").write_text("one\tun\teins\ntwo\tdeux\tzwei\n", "utf-8")
    (tmp_path / "two.tsv").write_text("three\tdrei\n", "utf-8")
    langs = ("en", "fr", "de")
    whole = card.read_translations(str(tmp_path / "three.tsv"), langs)
    pairwise = card.read_translations(f"en-de={tmp_path / 'two.tsv'}", langs)
    assert whole == (["en", "fr", "de"], [("one", "un", "eins"), ("two", "deux", "zwei")])
    assert pairwise == (["en", "de"], [("three", "drei")])


def test_style_taken_over_is_measured_on_all_sentences() -> None:
    rows = [("Sleep.", "Tu dors."), ("Sleep.", "Vous dormez.")] * 20
    records = card.fidelity_records(Stub(copies), [(["en", "fr"], rows)], 2, 0)
    assert len(records["fidelity"]) == 16
    assert records["transfer"] == [
        {
            "written": "fr", "meaning of": source, "property": "address", "style": value, "sources": "20",
            "taken over %": "0.0 [0.0, 16.1]", "chrF": row["chrF"],
        }
        for source, value, row in zip(["en", "en", "fr", "fr"], ["tu", "vous"] * 2, records["transfer"], strict=True)
    ]  # fmt: skip
    assert records["transfer"][2]["chrF"] == "100.0 [100.0, 100.0]" != records["transfer"][0]["chrF"]
    assert "transfer" not in card.fidelity_records(Stub(copies), [(["en", "fr"], rows[:4])], 2, 0)
