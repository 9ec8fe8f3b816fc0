"""`reproduce`: what is finished is never run again, what fails is marked, what is killed continues."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bgt_core
from analysis.reproduce import runner
from bgt_core import checkpoint
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.fidelity import Fidelity, HeldOut
from bgt_core.evaluation.tasks.sts import Sts, average
from bgt_core.evaluation.writing import OWN, REFERENCE

ROOT = Path(__file__).resolve().parents[3]


Reproduce = Callable[..., Any]  # its exit code, stdout, stderr


def command(data: Path, out: Path, *more: str) -> list[str]:
    return ["toy", "--scale=toy", f"--data={data}", f"--out={out}", "--resamples=100", "--device=cpu", *more]


def begin(data: Path, out: Path, *more: str) -> subprocess.Popen:
    """The same in a process of its own."""
    code = f"""
import runpy, torch
from analysis.reproduce import comparisons
toy = runpy.run_path({str(Path(__file__).with_name("conftest.py"))!r})
comparisons.COMPARISONS["toy"], comparisons.SCALES["toy"], comparisons.SAVE_EVERY["toy"] = toy["TOY"], toy["SCALE"], 3
from analysis.reproduce.__main__ import main
main()
"""
    return subprocess.Popen(
        [sys.executable, "-c", code, *command(data, out, "--threads=1", *more)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the comparison, run by two processes at once; OUT/begun lists what each of them began."""
    out = tmp_path_factory.mktemp("whole") / "out"
    both = [begin(data, out) for _ in range(2)]
    done = [process.communicate(timeout=500) for process in both]
    assert [process.returncode for process in both] == [0, 0], done
    begun = [[line.split()[1] for line in errors.splitlines() if re.match(r"\d/\d ", line)] for _, errors in done]
    (out / "begun").write_text(json.dumps(begun), encoding="utf-8")
    return out


def rows(out: Path, kind: str) -> list[dict[str, str]]:
    with (out / "results" / f"toy-{kind}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def weights(out: Path) -> dict[str, str]:
    paths = sorted((out / "cells").glob("*/final/model.safetensors"))
    return {path.parts[-3]: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def stamps(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_two_systems_that_are_one_are_trained_once_and_leave_what_is_promised(whole: Path, data: Path) -> None:
    cells = sorted((whole / "cells").iterdir())
    assert [cell.name.rsplit("_", 1)[0] for cell in cells] == [
        "bgt-small_dropout-0.5_en-fr_seed1",
        "bgt-small_en-fr_seed1",
        "bgt-small_en-fr_seed2",
    ]
    for cell in cells:
        assert {path.name for path in cell.iterdir()} == {
            *("run.json", "tokenizer.model", "data", "metrics.jsonl", "time.json", "lock"),
            *("final", "cosines.parquet", "hits.json", "shares.json", "written.json", "result.json"),
        }
        assert not (cell / "final" / checkpoint.OPTIMIZER).exists()
        trail = json.loads((cell / "result.json").read_text("utf-8"))
        assert trail["arguments"]["model.d_model"] == trail["overrides"]["model.d_model"] == 16
        assert trail["left_out"] == ["model.encoder_layers"]
        assert trail["updates"] == json.loads((cell / "metrics.jsonl").read_text("utf-8").splitlines()[-1])["steps"]
        assert trail["threads"] == 1
        assert trail["seconds"] > 0
        assert trail["tokens"] == trail["epoch_tokens"] > 0  # one epoch
        assert "kl/semantic" in trail["validation"]
    assert len(list((whole / "data").glob("*/store"))) == 1


@pytest.mark.slow
def test_scores_are_those_of_the_weights_that_are_kept(whole: Path, data: Path) -> None:
    (cell,) = (whole / "cells").glob("bgt-small_en-fr_seed2_*")
    scores = {row["measure"]: row for row in rows(whole, "scores") if (row["system"], row["seed"]) == ("BGT", "2")}
    model = bgt_core.load(cell / "final", "cpu")
    expected = evaluate(Sts(latent="semantic"), model, read_sets(data, ["2012", "2013"]), resamples=100)
    assert float(scores["STS average"]["value"]) == pytest.approx(average(expected), abs=0.01)
    for year in ("2012", "2013"):
        row, score = scores[f"STS {year}"], expected.value((year, "all"))
        assert float(row["value"]) == pytest.approx(score, abs=0.01)
        assert float(row["ci_low"]) < score < float(row["ci_high"])
    assert float(scores["STS average"]["published"]) == 65  # of the two years that there are
    assert {"STSB dev", "Hard+", "Hard-", "negation", "STS17 en-fr", "P@1"} <= set(scores)
    pairs = list(read_pairs(data / "retrieval/en-fr.toy.tsv", ("en", "fr"), Skipped()))
    columns = dict(zip(("en", "fr"), zip(*pairs, strict=True), strict=True))
    written = evaluate(Fidelity("en,fr"), {"m": model}, HeldOut(columns), resamples=100)
    for name, style, part in (
        ("chrF own", OWN, "chrF"),
        ("exact own", OWN, "exact %"),
        ("chrF other's meaning", REFERENCE, "chrF"),
    ):
        values = [
            cells[0].value for key, cells in written.scores.items() if (key.style_of, key.measure) == (style, part)
        ]
        assert float(scores[name]["value"]) == pytest.approx(sum(values) / 2)
    each = [row for row in rows(whole, "scores") if row["system"] == "BGT" and row["measure"] == "STS average"]
    mean, *seeds = (float(row["value"]) for row in each)
    assert mean == pytest.approx(sum(seeds) / 2)
    assert len(seeds) == 2
    language = {row["measure"] for row in rows(whole, "scores") if row["system"] == "BGT language"}
    assert not {"STS17 en-fr", "P@1", "chrF own"} & language  # two spaces: no cosine between them


@pytest.mark.slow
def test_what_is_measured_on_is_not_trained_on(whole: Path, data: Path) -> None:
    (pairs,) = (whole / "data").glob("en-fr-*.tsv.zst")
    trained = {side for pair in read_pairs(pairs, ("en", "fr"), Skipped()) for side in pair}
    measured = {
        cell
        for path in (data / "retrieval").iterdir()
        for line in path.read_text("utf-8").splitlines()
        for cell in line.split("\t")
    }
    given = (data / "parallel/en-fr.toy.tsv").read_text("utf-8")
    assert any(sentence in given for sentence in measured)
    assert trained
    assert not trained & measured


@pytest.mark.slow
def test_a_finished_training_never_runs_twice(whole: Path, data: Path, reproduce: Reproduce) -> None:
    before, results = stamps(whole), (whole / "results" / "toy.md").read_bytes()
    done = reproduce(*command(data, whole))
    assert done.code == 0
    assert stamps(whole) == before
    assert (whole / "results" / "toy.md").read_bytes() == results
    assert "train" not in done.err


@pytest.mark.slow
@pytest.mark.usefixtures("broken")
def test_a_failed_training_is_marked_and_the_rest_continues(
    whole: Path, data: Path, tmp_path: Path, reproduce: Reproduce
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "out", symlinks=True))
    done = reproduce(*command(data, out))
    assert done.code == 5
    assert "1 of 4 trainings failed" in done.err.splitlines()[-1]
    (mark,) = out.glob("cells/no-such-recipe_*/error.json")
    assert "Unknown recipe 'no-such-recipe'" in json.loads(mark.read_text("utf-8"))["error"]
    stated = {row["claim"]: row["verdict"] for row in rows(out, "claims")}
    assert stated["BGT is above nowhere on STS average"] == "not run"
    assert "failed: Unknown recipe" in (out / "results" / "toy.md").read_text("utf-8")

    stamp = mark.stat().st_mtime_ns
    again = reproduce(*command(data, out))
    assert again.code == 5
    assert mark.stat().st_mtime_ns == stamp
    before = stamps(out)
    assert reproduce(*command(data, out, "--retry")).code == 5
    touched = {path for path, at in stamps(out).items() if before.get(path) != at}
    assert {path.parent.name for path in touched} == {mark.parent.name}
    assert mark in touched
    listed = json.loads(reproduce(*command(data, out, "--list", "--json")).out)
    assert listed["schema"] == "bgt-reproduce-list/1"
    assert sorted(row["state"] for row in listed["trainings"]) == ["failed", "finished", "finished", "finished"]
    assert reproduce(*command(data, out, "--only", "dropped*")).code == 0  # the others are not asked for


@pytest.mark.slow
def test_a_training_whose_recipe_changed_is_outdated(
    whole: Path, data: Path, tmp_path: Path, reproduce: Reproduce
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "out", symlinks=True))
    (cell,) = out.glob("cells/bgt-small_dropout*")
    for name in ("result.json", "run.json"):
        record = json.loads((cell / name).read_text("utf-8"))
        record["arguments"]["objective.margin.margin"] = 0.123
        (cell / name).write_text(json.dumps(record))
    before = weights(out)
    (cell / "final" / "model.safetensors").write_bytes(b"of another recipe")
    assert reproduce(*command(data, out)).code == 5
    assert {row["system"]: row["state"] for row in rows(out, "cells")}["dropped out"] == "outdated"
    done = reproduce(*command(data, out, "--retry"))
    assert done.code == 0, done.err
    assert "objective.margin.margin=0.123, now 0.6" in done.err
    assert weights(out) == before


@pytest.mark.slow
def test_what_is_killed_or_stopped_continues_to_the_same_weights(
    whole: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reproduce: Reproduce
) -> None:
    out, only = tmp_path / "out", "--only=dropped*"
    process = begin(data, out, only)
    deadline = time.monotonic() + 240
    while not list(out.glob("cells/*/step-*[0-9]/config.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=60)
    (cell,) = out.glob("cells/*")
    first = checkpoint.steps_of(cell)
    assert (
        json.loads(reproduce(*command(data, out, only, "--list", "--json")).out)["trainings"][0]["state"] == "stopped"
    )

    save = checkpoint.save

    def stopped(*arguments: object, **options: object) -> None:
        save(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", stopped)
        done = reproduce(*command(data, out, only))
    assert done.code == 130
    assert done.err.splitlines()[-1] == "reproduce: Stopped; finished trainings are kept. The same command continues."
    assert checkpoint.steps_of(cell) != first
    assert not (cell / "result.json").exists()

    done = reproduce(*command(data, out, only))
    assert done.code == 0, done.err
    assert weights(out) == {name: sha256 for name, sha256 in weights(whole).items() if "dropout" in name}
    states = [row["state"] for row in rows(out, "cells")]
    assert states == ["waiting", "waiting", "finished", "waiting", "waiting"]
    page = (out / "results" / "toy.md").read_text("utf-8")
    assert "| BGT | 2 waiting | (65.0) | (60.0) | (70.0) |" in page  # the paper's numbers need no training of ours


@pytest.mark.slow
def test_two_processes_share_the_work(whole: Path) -> None:
    begun = json.loads((whole / "begun").read_text("utf-8"))
    assert sorted(begun[0] + begun[1]) == sorted(weights(whole))  # each by one of them, once
    assert all(begun)


@pytest.mark.slow
def test_the_report_is_drawn_from_results_alone(whole: Path, tmp_path: Path, reproduce: Reproduce) -> None:
    shutil.copytree(whole / "results", tmp_path / "results")
    (tmp_path / "results" / "toy.md").unlink()
    done = reproduce("toy", "--report-only", "--results", tmp_path / "results")
    assert done.code == 0
    page = (tmp_path / "results" / "toy.md").read_text("utf-8")
    assert page == (whole / "results" / "toy.md").read_text("utf-8")
    assert "| BGT | 2 finished |" in page
    assert "(65.0)" in page
    assert str(whole) not in page
    document = json.loads(reproduce("toy", "--report-only", "--json", "--results", tmp_path / "results").out)
    assert document["schema"] == "bgt-reproduce/1"
    assert [row["verdict"] for row in document["tables"]["toy"]["claims"]] == [
        row["verdict"] for row in rows(whole, "claims")
    ]


@pytest.mark.slow
def test_what_is_finished_by_now_is_reported(whole: Path, data: Path, tmp_path: Path, reproduce: Reproduce) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "out", symlinks=True, ignore=shutil.ignore_patterns("results")))
    gone = next(path for path in out.glob("cells/*seed2*"))
    shutil.rmtree(gone)
    done = reproduce(*command(data, out), "--report-only")
    assert done.code == 0
    assert not gone.exists()
    assert "| BGT | 1 finished, 1 waiting |" in (out / "results" / "toy.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing"], 2, "no table 'nothing'; choose from main"),
        (["toy"], 2, "--data"),
        (["toy", "--data=DATA", "--out=o", "--scale=huge"], 2, "--scale 'huge': choose from paper, small"),
        (["toy", "--data=nowhere", "--out=o"], 3, "--data nowhere: no such file or folder"),
        (["depth", "--data=DATA", "--out=o", "--only=x*"], 2, "systems are 5/1"),
        (["toy", "--data=DATA", "--out=o", "--seeds=1,a"], 2, "whole numbers"),
        (["toy", "--data=DATA", "--out=o", "--threads=0"], 2, "--threads 0"),
        (["cross-lingual", "--data=DATA", "--out=o"], 3, "no translations of en-es"),
        (["toy", "--report-only", "--out=o"], 3, "no results"),
        (["toy", "--report-only"], 2, "--results is needed, or --out"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str],
    code: int,
    says: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reproduce: Reproduce,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = reproduce(*(argument.replace("DATA", str(data)) for argument in arguments))
    assert done.code == code
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.glob("o/*"))


@pytest.mark.slow
def test_errors_are_kept_whatever_they_are(
    whole: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reproduce: Reproduce
) -> None:
    def fails(*_: object) -> None:
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(runner.measure, "sts_scores", fails)
    out = Path(shutil.copytree(whole, tmp_path / "out", symlinks=True))
    for result in out.glob("cells/*/result.json"):
        result.unlink()
    assert reproduce(*command(data, out)).code == 5
    errors = [json.loads(path.read_text("utf-8")) for path in out.glob("cells/*/error.json")]
    assert [error["kind"] for error in errors] == ["TypeError"] * 3
    assert "fails" in errors[0]["trace"]
    assert "No system has been trained." in (out / "results" / "toy.md").read_text("utf-8")
