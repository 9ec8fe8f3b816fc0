"""`bgt syntax`: its table, its JSON, and a line for what is foreseeable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Bgt = Callable[..., tuple[int, str, str]]


def test_a_table_with_a_row_for_each_latent(
    bgt: Bgt, saved: Path, trees: list[str], treebank: Callable[..., Path]
) -> None:
    file = treebank("a.mrg", trees)
    code, out, err = bgt("syntax", file, "--model", f"mine={saved}", "--model", "baseline:words", "--limit", 60,
                         "--resamples", 100, "--device", "cpu", "--compare")  # fmt: skip
    assert code == 0, err
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["nearest by", "labelled F1", "tree edit distance", "POS accuracy"]
    names = ["random neighbour", "mine semantic", "mine language", "baseline:words", "upper bound"]
    assert [row[0] for row in rows[:5]] == names
    assert len(rows) == 5 + 2 + 3 * 6  # a blank line, a head, and three measures of six pairs of rows
    assert "60 queries, " in err
    assert "lower is better" in err


def test_one_document_of_json_about_dependencies(bgt: Bgt, treebank: Callable[..., Path]) -> None:
    words = [
        f"1\tw{n}\t_\t{'NOUN' if n % 2 else 'VERB'}\t_\t_\t2\tdep\t_\t_\n2\tz\t_\tX\t_\t_\t0\troot\t_\t_\n"
        for n in range(9)
    ]
    code, out, err = bgt("syntax", treebank("a.conllu", words), "--model", "baseline:words", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["schema"] == "bgt-syntax/1"
    assert [row["score"] for row in document["scores"]] == ["labelled attachment", "tree edit distance", "POS accuracy"]
    assert document["scores"][0]["systems"]["baseline:words"]["value"] == 100
    assert (document["queries"], document["candidates"]) == (5, 4)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("absent.mrg", 3, "absent.mrg"),
        ("a.mrg --lengths 29", 2, "--lengths 29: expected the fewest and the most words"),
        ("a.mrg --lengths 9-300", 2, "9-300: expected from 1 to 200 words"),
        ("a.mrg --resamples 3", 2, "resamples"),
        ("bad.mrg", 4, "bad.mrg:1: 'word' outside any bracket"),
        ("empty.mrg", 4, "0 of 0 sentences are queries"),
        ("a.mrg --latent manner --model baseline:words", 2, "there is no latent 'manner'"),
    ],
)
def test_errors_take_a_line(
    bgt: Bgt, treebank: Callable[..., Path], trees: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    arguments: str, code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    treebank("a.mrg", trees[:40])
    treebank("bad.mrg", ["word"])
    treebank("empty.mrg", [])
    got, out, err = bgt("syntax", *arguments.split())
    assert (got, out) == (code, ""), err
    assert message in err
