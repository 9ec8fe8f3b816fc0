"""`bgt compare`: the largest disagreements first, with the words that move each similarity."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bgt_core.encoders import open_encoder
from bgt_core.evaluation.systems import disagreement, word_effects
from bgt_core.grammar import pairs

Bgt = Callable[..., Any]
SPECS = {"words": "baseline:words", "tfidf": "baseline:tfidf"}
MODELS = [part for name, spec in SPECS.items() for part in ("--model", f"{name}={spec}")]


@pytest.fixture
def columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    monkeypatch.chdir(tmp_path)
    rows = [(pair.texts["en"], pair.texts["fr"]) for pair in pairs(30)]
    Path("pairs.tsv").write_text("".join(f"{en}\tskipped\t{fr}\n" for en, fr in rows), "utf-8")
    return list(zip(*rows, strict=True))


def test_the_document_has_what_the_library_computes(bgt: Bgt, columns: list[tuple[str, ...]]) -> None:
    done = bgt("compare", "pairs.tsv", "--langs", "en,_,fr", *MODELS, "--top", 3, "--each-word", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    encoders = {name: open_encoder(spec) for name, spec in SPECS.items()}
    expected = disagreement(encoders, *columns, ("en", "fr"))
    assert document["models"] == list(SPECS) and document["count"] == 30
    assert [pair["line"] - 1 for pair in document["pairs"]] == expected.order[:3].tolist()
    for pair in document["pairs"]:
        row = pair["line"] - 1
        assert [pair["left"], pair["right"]] == [column[row] for column in columns]
        assert pair["ranks"] == pytest.approx(expected.ranks[row])
        effects = word_effects(encoders, pair["left"], pair["right"], ("en", "fr"))
        assert [(each["side"], each["word"]) for each in pair["words"]] == [(each.side, each.word) for each in effects]


def test_the_table_shows_gaps_and_words(bgt: Bgt, columns: list[tuple[str, ...]]) -> None:
    head, *rows = bgt("compare", "pairs.tsv", "--langs", "en,_,fr", *MODELS, "--top", 2).out.splitlines()
    assert head.split("\t") == ["left", "right", *SPECS, "rank by words", "rank by tfidf", "gap"] and len(rows) == 2
    gaps = [abs(int(row.split("\t")[-1])) for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    shown = bgt("compare", "pairs.tsv", "--langs", "en,_,fr", *MODELS, "--top", 1, "--each-word").out
    assert "of\tword\twords\ttfidf" in shown


def test_a_pair_of_too_many_words_is_named_and_the_others_have_theirs(bgt: Bgt, columns: list[tuple[str, ...]]) -> None:
    Path("pairs.tsv").write_text(f"{'a ' * 999}b\tLe chat.\nIt is late.\tIl est tard.\n", "utf-8")
    done = bgt("compare", "pairs.tsv", "--langs", "en,fr", *MODELS, "--each-word")
    assert done.code == 0 and done.out.count("of\tword") == 1 and "It is late.\tlate\t" in done.out
    assert "pair 1: " in done.err and "300 words and marks at most; this one has 1,000" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--langs", "en,_,fr", "--model", "baseline:words"], "expected two encoders"),
        (["--langs", "en,_,_", *MODELS], "expected two columns of text"),
        (["--langs", "en,_,fr", *MODELS, "--limit", "1"], "greater than or equal to 2"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(
    bgt: Bgt, columns: list[tuple[str, ...]], arguments: list[str], message: str
) -> None:
    done = bgt("compare", "pairs.tsv", *arguments)
    assert done.code == 2 and message in done.err and "Traceback" not in done.err
