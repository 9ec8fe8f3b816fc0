"""`bgt-probe`, through typer's runner, on a fake model."""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("fake")
QUICK = ("--lang", "fr", "--task", "punct-num", "--max-items", "400", "--seeds", "2")


def test_the_table_is_on_stdout_and_progress_on_stderr(probe: Callable) -> None:
    result = probe(*QUICK)
    assert result.code == 0, result.err
    head, *rows = (line.split("\t") for line in result.out.split("\n\n")[0].splitlines())
    assert head[:9] == ["task", "lang", "latent", "train", "test", "classes", "accuracy", "95% CI", "sd"]
    assert head[9:] == ["over best baseline", "note"]  # of 40 test items too few recur in train for a control task
    names = [
        "semantic",
        "language",
        "semantic, translation",
        "majority",
        "length",
        "word 1-2-grams",
        "character 3-5-grams",
    ]
    assert [row[2] for row in rows] == names
    assert all(row[4] == "80" for row in rows)
    assert rows[0][-1].startswith("not separable from majority")
    assert "semantic - language" in result.out
    assert "punct-num fr: semantic" in result.err
    assert "punct-num fr: semantic" not in result.out


def test_json_is_one_document_with_a_schema(probe: Callable) -> None:
    document = json.loads(probe(*QUICK, "--json", "--latent", "language").out)
    assert document["schema"] == "bgt-probe/5"
    (result,) = document["results"]
    assert (result["task"], result["seeds"], result["difference"]) == ("punct-num", 2, None)
    row = result["rows"][0]
    assert row["latent"] == "language"
    assert 0 <= row["ci_low"] <= row["accuracy"] <= row["ci_high"] <= 1


def test_csv_holds_the_numbers_of_the_json(probe: Callable, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    document = json.loads(probe(*QUICK, "--json", "--no-baselines", "--no-cache", "--csv", str(file)).out)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["latent"] for row in rows] == ["semantic", "language"]
    assert [float(row["accuracy"]) for row in rows] == [row["accuracy"] for row in document["results"][0]["rows"]]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_ones_own_sentences(probe: Callable, tmp_path: Path) -> None:
    file = tmp_path / "own.tsv"
    file.write_text("".join(f"x\tNumber {number}{'.' * (number % 2 + 1)}\n" for number in range(400)), encoding="utf-8")
    result = probe(
        "--lang", "en", "--task", "punct-num", "--data", str(file), "--column", "2", "--seeds", "1", "--json"
    )
    assert result.code == 0, result.err
    rows = json.loads(result.out)["results"][0]["rows"]
    assert next(row["accuracy"] for row in rows if row["latent"] == "language") == 1.0


def test_several_tasks_in_the_order_asked_each_once(probe: Callable) -> None:
    result = probe(*QUICK, "--task", "length,punct-num", "--no-baselines", "--json")
    assert [entry["task"] for entry in json.loads(result.out)["results"]] == ["punct-num", "length"]


def test_listing_tasks_needs_no_model(probe: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("bgt_core.encoders.ours.load")
    result = probe("--list-tasks")
    assert result.code == 0
    assert [line.split("\t")[:2] for line in result.out.splitlines()[1:]] == [
        *([name, "en, fr, es, de, tr, ar"] for name in ("subj-num", "obj-num")),
        *([name, "any"] for name in ("depth", "top-const")),
        ["word-content", "en, fr, es, de, tr, ar"],
        *([name, "any"] for name in ("length", "punct-num", "punct-first")),
        ["gender", "fr, es"],
        ["address", "fr, de, es, tr"],
        ["bigram-shift", "en, fr, es, de, tr, ar"],
        ["contraction", "en"],
        *([name, "any"] for name in ("coord-inv", "lang-id")),
        ["politeness", "ja"],
        ["question-form", "fr"],
        ["sentence-type", "any"],
        ["tense", "en, fr, es, de, tr"],
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--lang", "fr", "--task", "gendr"), 2, "Unknown task 'gendr'. Did you mean 'gender'?"),
        (("--lang", "fr", "--task", "tense"), 2, "can't be labelled from sentences alone: it needs past_present.txt"),
        (("--lang", "en", "--task", "gender"), 2, "Task 'gender' has no definition for 'en'; available: fr, es."),
        ((), 2, "--lang is needed"),
        (("--lang", "fr", "--column", "2"), 2, "--data is needed: a column belongs to a file"),
        (("--lang", "fr", "--data", "absent.txt"), 3, "--data absent.txt: no such file or folder."),
        (("--lang", "fr", "--csv", "absent/rows.csv"), 3, "the folder absent does not exist"),
        (
            ("--lang", "fr", "--task", "length", "--latent", "meaning"),
            2,
            "--latent 'meaning': bgt-en-fr has no such latent",
        ),
        (("--lang", "es", "--task", "length"), 2, "--lang es: the model has en, fr."),
        (("--lang", "fr", "--seeds", "99"), 2, "choose 1 to 10"),
        (("--lang", "fr", "--device", "abacus"), 2, "abacus"),
    ],
)
def test_usage_errors_are_one_line_on_stderr_and_an_exit_code(
    probe: Callable, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = probe(*arguments)
    assert result.code == code
    assert message in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


def test_help_is_quick_and_imports_no_torch() -> None:
    code = (
        "import sys\nfrom probes.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit as stop: assert not stop.code\n"
        "assert not {'torch', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "120"}
    )
    assert done.returncode == 0, done.stderr
    assert "--task" in done.stdout
    assert time.perf_counter() - start < 5  # about 0.2 s on an idle core
