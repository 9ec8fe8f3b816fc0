"""`bgt sts`: one table in every format, systems kept and compared, sets across languages, hard splits."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bgt_core
from bgt_core.errors import BgtError
from bgt_core.evaluation.sts import evaluate, write_scores

ROW = {"year": "2012", "dataset": "A", "score": "Pearson", "pairs": 3, "system": "model semantic"}
MADE = ("mean Pearson", "weighted Pearson", "concatenated Spearman")


Bgt = Callable[..., Any]  # its exit code, stdout, stderr


@pytest.fixture
def bgt(bgt: Bgt) -> Bgt:
    """bgt("--data", "sts"): the command in this process."""
    return lambda *arguments: bgt("sts", *arguments, "--device", "cpu")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path) -> Path:
    """A folder with a model and one small set, the working one."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    Path("sts/2012").mkdir(parents=True)
    rows = "5\tThe dog sleeps.\tThe dog sleeps.\n0\tAnna reads.\tA car.\n2\tA car.\tThe red car.\n"
    Path("sts/2012/A.tsv").write_text(rows, encoding="utf-8")
    return tmp_path


def test_sts_prints_json_and_a_table_of_the_same_numbers(bgt: Bgt, here: Path) -> None:
    command = ("--data", "sts", "--sets", "2012", "--model", "model", "--resamples", "100", "--aggregate", "all")
    document = json.loads(bgt(*command, "--json").out)
    assert document["schema"] == "bgt-sts/2"
    assert [(row["dataset"], row["score"]) for row in document["scores"]] == [
        ("A", "Pearson"),
        ("A", "Spearman"),
        *((name, score) for name in ("all", "average") for score in MADE),
    ]
    done = bgt(*command, "--compare")
    table, differences = ([line.split("\t") for line in part.splitlines()] for part in done.out.split("\n\n"))
    assert table[0] == ["STS", "score", "pairs", "model semantic", "model language"]
    for line, row in zip(table[1:], document["scores"], strict=True):
        cells = [
            f"{cell['value']:z.1f} [{cell['ci_low']:z.1f}, {cell['ci_high']:z.1f}]" for cell in row["systems"].values()
        ]
        assert line[:3] == [f"{row['year']} {row['dataset']}", row["score"], "3"]
        assert [cell.rstrip(" =*") for cell in line[3:]] == cells
    assert [line[2] for line in differences[1:]] == ["model semantic - model language"] * len(document["differences"])
    assert "Sentence-BERT" in done.err
    assert "2012 is without MSRpar" in done.err
    assert "2013" not in done.err  # with or without SMT is a matter of 2013 alone


def test_one_call_gives_what_the_command_prints(bgt: Bgt, here: Path) -> None:
    document = json.loads(
        bgt("--data", "sts", "--sets", "2012", "--model", "model", "--resamples", "100", "--json").out
    )
    model = bgt_core.load("model", "cpu")
    table = evaluate({"model": model}, "sts", sets=["2012"], resamples=100)
    assert table.as_dict() == document
    assert len(table.rows) == 2 * len(table.scores)
    assert table.rows[0] == {**ROW, **document["scores"][0]["systems"]["model semantic"]}
    semantic = table.pairs["model semantic"]
    write_scores(Path("kept.parquet"), table.pairs)
    side_by_side = evaluate({"kept": semantic, "new": model}, semantic.sets, latent="semantic", resamples=100)
    assert side_by_side.systems == ["kept", "new semantic"]
    assert all(gap.difference.value == 0 for gap in side_by_side.differences)
    known = evaluate({"file": Path("kept.parquet"), "kept": semantic}, resamples=100)
    assert known.systems == ["file model semantic", "file model language", "kept"]
    assert evaluate(model, "sts", sets=["2012"], latent="semantic", resamples=100).systems == ["model semantic"]


def test_one_call_says_what_does_not_fit(here: Path) -> None:
    model = bgt_core.load("model", "cpu")
    known = evaluate(model, "sts", sets=["2012"], resamples=100).pairs["model semantic"]
    for message, systems, arguments in (
        ("`data`: say which folder", model, {}),
        ("`resamples` 9", model, {"data": "sts", "resamples": 9}),
        ("2012 is without MSRpar", model, {"data": "sts", "sets": ["2012"], "strict": True}),
        ("Two systems are called 'a semantic'", {"a semantic": known, "a": model}, {"data": "sts", "sets": ["2012"]}),
        ("other: There is no latent 'style'", {"other": model}, {"data": "sts", "sets": ["2012"], "latent": "style"}),
    ):
        with pytest.raises(BgtError, match=message):
            evaluate(systems, **arguments)


def test_sts_writes_the_same_table_in_every_format(bgt: Bgt, here: Path) -> None:
    files = ("--csv", "t.csv", "--latex", "t.tex", "--parquet", "t.parquet")
    done = bgt("--data", "sts", "--sets", "2012", "--model", "model", "--resamples", "100", *files, "--json")
    rows = pq.read_table("t.parquet").to_pylist()
    document = json.loads(done.out)["scores"]
    for row, known in zip(rows, document, strict=True):
        for name, cell in known["systems"].items():
            entry = {"value": row[name], **{part: row[f"{name} {part}"] for part in ("ci_low", "ci_high", "mark")}}
            assert entry == cell
    with Path("t.csv").open(newline="") as file:
        assert [float(row["model semantic"]) for row in csv.DictReader(file)] == [row["model semantic"] for row in rows]
    assert f"{document[0]['systems']['model semantic']['value']:.1f}" in Path("t.tex").read_text()


def test_sts_compares_kept_scores_without_model_or_data(bgt: Bgt, here: Path) -> None:
    data = ("--data", "sts", "--sets", "2012", "--resamples", "100")
    whole = bgt(*data, "--model", "model", "--scores", "all.parquet").out.splitlines()
    for latent in ("semantic", "language"):
        assert bgt(*data, "--model", "model", "--latent", latent, "--scores", f"{latent}.parquet").code == 0
    two = bgt("--model", "semantic.parquet", "--model", "language.parquet", "--resamples", "100")
    one = bgt("--model", "all.parquet", "--resamples", "100")
    side_by_side = bgt(*data, "--model", "model", "--model", "semantic.parquet", "--latent", "language")
    for done, names in ((two, "semantic language"), (one, "all model semantic all model language")):
        head, *lines = done.out.splitlines()
        assert (" ".join(head.split("\t")[3:]), lines) == (names, whole[1:])
    assert side_by_side.out.splitlines() == [whole[0].replace("model semantic", "semantic"), *whole[1:]]
    Path("old").mkdir()
    shutil.copy("all.parquet", "old/all.parquet")
    head = bgt("--model", "all.parquet", "--model", "old/all.parquet", "--resamples", "100").out.splitlines()[0]
    assert head.split("\t")[3::2] == ["all.parquet model semantic", "old/all.parquet model semantic"]
    Path("sts/2012/A.tsv").write_text("1\ta\tb\n2\tc\td\n3\te\tf\n")
    other = bgt(*data, "--model", "semantic.parquet")
    assert (other.code, other.out) == (4, "")
    assert "was scored on other pairs" in other.err


def test_sts_cuts_the_hard_splits_from_its_years(bgt: Bgt, here: Path) -> None:
    words = "the dog is not in a red car".split()
    rows = [(n % 11 / 2, " ".join(words[: n % 7 + 1]), " ".join(words[n % 5 :])) for n in range(385)]
    Path("sts/2012/A.tsv").write_text("".join(f"{gold}\t{left}\t{right}\n" for gold, left, right in rows))
    done = bgt("--data", "sts", "--sets", "2012", "--hard", "--model", "model", "--resamples", "100")
    names = [line.split("\t")[0] for line in done.out.splitlines()]
    assert {"hard Hard+", "hard Hard-", "hard negation", "2012 A", "2012 average"} <= set(names)
    assert "Hard STS: 385 different pairs (the paper has 13,023" in done.err


def test_sts_across_languages_leaves_the_language_latent_out(bgt: Bgt, here: Path) -> None:
    Path("sts17").mkdir()
    Path("sts17/en-fr.tsv").write_text(
        "5\tThe dog sleeps.\tLe chien dort.\n0\tA car.\tAnna lit.\n2\tAnna.\tUne voiture.\n"
    )
    command = ("--data", ".", "--sets", "sts17", "--model", "model", "--resamples", "100")
    assert bgt(*command).out.splitlines()[0].split("\t")[3:] == ["model semantic"]
    asked = bgt(*command, "--latent", "language")
    assert (asked.code, asked.out) == (2, "")
    assert "two spaces" in asked.err
