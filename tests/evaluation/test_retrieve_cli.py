"""`bgt retrieve`: its table, its JSON, and a line for what is foreseeable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bgt_core.evaluation.retrieval import retrieve

from bgt_core import load
from bgt_core.grammar import Pair

Bgt = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def bgt(bgt: Callable) -> Bgt:
    """bgt("pairs.tsv --langs en,fr"): exit code, stdout, stderr."""
    return lambda arguments: bgt("retrieve", *arguments.split(), "--device", "cpu")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, grammar: list[Pair]) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    pairs = [tuple(pair.texts.values()) for pair in grammar[:30]]
    for name, rows in {
        "a.tsv": pairs,
        "same.tsv": [(one, one) for one, _ in pairs],
        "one.tsv": [("one side",)],
    }.items():
        Path(name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    Path("b.en").write_text("".join(f"{one}\n" for one, _ in pairs), encoding="utf-8")
    Path("b.fr").write_text("".join(f"{two}\n" for _, two in pairs[:-1]), encoding="utf-8")
    Path("empty.tsv").touch()
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_table_of_files_models_and_searches(bgt: Bgt, grammar: list[Pair]) -> None:
    code, out, err = bgt("a.tsv same.tsv --langs en,fr --margin ratio --model model --model again=./model")
    assert code == 0, err
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["file", "model", "by", "pairs", "en to fr %", "fr to en %", "mining F1 %"]
    assert [row[:3] for row in rows] == [
        [file, name, by] for name in ("model", "again") for file in ("a.tsv", "same.tsv") for by in ("cosine", "ratio")
    ]
    texts = list(zip(*(pair.texts.values() for pair in grammar[:30]), strict=True))
    (expected,) = retrieve(load("model", "cpu"), *texts, langs=("en", "fr"))
    assert rows[0][3] == "30"
    assert rows[0][4].startswith(f"{100 * expected.forward.mean():.1f} [")
    assert rows[0][5].startswith(f"{100 * expected.backward.mean():.1f} [")
    assert (rows[0][6] == "", float(rows[1][6]) >= 0) == (True, True)
    copies = len(texts[0]) - len(set(texts[0]))
    assert f"a.tsv: 30 pairs; sentences that repeat one: {copies} in en" in err


@pytest.mark.usefixtures("here")
def test_one_document_of_json(bgt: Bgt) -> None:
    code, out, _ = bgt("same.tsv --langs en,en --json --model model --margin ratio")
    document = json.loads(out)
    assert (code, document["schema"], document["k"]) == (0, "bgt-retrieve/1", 4)
    cosine, ratio = document["results"]
    assert (cosine["by"], cosine["mining"], ratio["by"]) == ("cosine", None, "ratio")
    there = cosine["precision_at_1"][0]
    assert (there["from"], there["to"]) == ("en", "en")
    assert there["value"] == pytest.approx(there["hits"] / 30)
    assert there["low"] < there["value"] <= there["high"] <= 1
    assert ratio["mining"]["precision"] == 1  # a text and its copy


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("a.tsv --langs en", 2, "--langs en: expected two languages"),
        ("a.tsv --langs en,", 2, "expected two languages"),
        ("a.tsv --langs en,de", 2, "no language 'de'; it has en, fr"),
        ("a.tsv --langs en,fr --margin ratios", 2, "no margin 'ratios'"),
        ("a.tsv --langs en,fr --margin ratio --k 0", 2, "--k 0"),
        ("absent.tsv --langs en,fr", 3, "no file absent.tsv"),
        ("empty.tsv --langs en,fr", 4, "empty.tsv is empty"),
        ("one.tsv --langs en,fr", 4, "one.tsv:1: 1 column, expected 2"),
        ("b --langs en,fr", 4, "b.en has 30, b.fr has 29"),
        ("a.tsv --langs en,fr --model nowhere", 3, "nowhere: no such checkpoint"),
    ],
)
def test_bad_input_is_one_line(bgt: Bgt, arguments: str, code: int, message: str) -> None:
    status, out, err = bgt(arguments if "--model" in arguments else f"{arguments} --model model")
    assert (status, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("bgt: ")
