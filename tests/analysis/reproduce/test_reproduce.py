"""Test `reproduce`: it skips finished trainings, marks failed trainings, and continues trainings that were killed."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from analysis.reproduce import results, trainings
from analysis.reproduce.__main__ import main
from analysis.reproduce.comparisons import COMPARISONS, Claim, Comparison, ExperimentSpec, above, read
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE, BootstrappedScore
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.fidelity import Fidelity, HeldOut
from bgt_core.evaluation.tasks.retrieval import Retrieval
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.evaluation.writing import OWN, REFERENCE

ROOT, TOY = Path(__file__).resolve().parents[3], Path(__file__).with_name("toy.toml")
Reproduce = Callable[..., Any]  # runs `reproduce`; returns the exit code, stdout and stderr


def command(data: Path, out: Path, *more: str) -> list[str]:
    return ["toy", "--scale=toy", f"--data={data}", f"--out={out}", "--resamples=100", "--device=cpu", *more]


def begin(data: Path, out: Path, *more: str) -> subprocess.Popen:
    """Start `reproduce` in another process, without waiting for its end."""
    code = f"""
from pathlib import Path
from analysis.reproduce import comparisons, trainings
from analysis.reproduce.__main__ import main
comparisons.COMPARISONS |= comparisons.read(Path({str(TOY)!r}))
trainings.SAVE_EVERY["toy"] = 3
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
    """The output folder of a complete run of the comparison "toy"."""
    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COMPARISONS, "toy", read(TOY)["toy"])
        patch.setitem(trainings.SAVE_EVERY, "toy", 3)
        patch.setattr(sys, "argv", ["reproduce", *command(data, out, "--threads=1")])
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    return out


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_at_once_begin_each_training_once(whole: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    both = [begin(data, out) for _ in range(2)]
    done = [process.communicate(timeout=500) for process in both]
    assert [process.returncode for process in both] == [0, 0], done
    begun = [[line.split()[1] for line in errors.splitlines() if re.match(r"\d/\d ", line)] for _, errors in done]
    assert sorted(begun[0] + begun[1]) == sorted(weights(out)) and all(begun)
    assert weights(out) == weights(whole)


def weights(out: Path) -> dict[str, str]:
    """Return the hash of the last weights of each training."""
    paths = sorted((out / "cells").glob("*/run/step-*/model.safetensors"))
    return {path.parts[-4]: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


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
        assert {path.name for path in cell.iterdir()} == {"run", "scores.parquet", "result.json", "time.json", "lock"}
        trail = json.loads((cell / "result.json").read_text("utf-8"))
        assert trail["arguments"]["model.d_model"] == trail["overrides"]["model.d_model"] == 16
        assert trail["left_out"] == ["model.encoder_layers"]
        rows = (cell / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
        assert trail["updates"] == json.loads(rows[-1])["steps"] and trail["threads"] == 1
        assert trail["seconds"] > 0 and trail["tokens"] > 0 and "kl/semantic" in trail["validation"]
    assert len(list((whole / "data").glob("*.model"))) == 1  # all trainings share one tokenizer
    (pairs,) = (whole / "data").glob("en-fr-*.tsv.zst")
    trained = {side for pair in read_pairs(pairs, ("en", "fr"), Skipped()) for side in pair}
    lines = [line for path in (data / "retrieval").iterdir() for line in path.read_text("utf-8").splitlines()]
    tested = {cell for line in lines for cell in line.split("\t")}
    given = (data / "parallel/en-fr.toy.tsv").read_text("utf-8")
    assert any(sentence in given for sentence in tested)
    assert trained and not trained & tested


@pytest.mark.slow
def test_scores_are_those_of_the_weights_that_are_kept(whole: Path, data: Path) -> None:
    (cell,) = (whole / "cells").glob("bgt-small_en-fr_seed2_*")
    stored = results.stored(whole / "results", "toy")["scores"]
    scores = {row["measure"]: row for row in stored if (row["system"], row["seed"]) == ("BGT", "2")}
    model = bgt_core.load(cell / "run", "cpu")
    expected = evaluate(Sts(latent="semantic"), model, read_sets(data, ["2012", "2013"]), resamples=100)
    years = {year: expected.value((year, "all")) for year in ("2012", "2013")}
    assert scores["STS average"]["value"] == pytest.approx(sum(years.values()) / 2)
    for year, score in years.items():
        row = scores[f"STS {year}"]
        assert row["value"] == pytest.approx(score)
        assert row["ci_low"] < score < row["ci_high"]
    assert scores["STS average"]["published"] == 65  # the paper's average over the two years that the data contain
    assert {"STSB dev", "Hard+", "Hard-", "negation", "STS17 en-fr", "P@1"} <= set(scores)
    pairs = list(read_pairs(data / "retrieval/en-fr.toy.tsv", ("en", "fr"), Skipped()))
    sides = list(zip(*pairs, strict=True))
    ways = evaluate(Retrieval("en,fr"), model, {"toy": (sides[0], sides[1])}, resamples=100).scores.values()
    assert scores["P@1"]["value"] == pytest.approx(sum(cells[0].value for cells in ways) / 2)
    written = evaluate(Fidelity("en,fr"), {"m": model}, HeldOut(dict(zip(("en", "fr"), sides, strict=True))))
    for name, style, part in (
        ("chrF own", OWN, "chrF"),
        ("exact own", OWN, "exact %"),
        ("chrF other's meaning", REFERENCE, "chrF"),
    ):
        values = [
            cells[0].value for key, cells in written.scores.items() if (key.style_of, key.measure) == (style, part)
        ]
        assert scores[name]["value"] == pytest.approx(sum(values) / 2)
    each = [row["value"] for row in stored if row["system"] == "BGT" and row["measure"] == "STS average"]
    assert each[0] == pytest.approx(sum(each[1:]) / 2) and len(each) == 3
    language = {row["measure"] for row in stored if row["system"] == "BGT language"}
    assert "Hard+" in language and not {"STS17 en-fr", "P@1", "chrF own"} & language  # need a semantic latent


@pytest.mark.slow
def test_a_failed_training_is_marked_and_tried_again_and_the_rest_is_never_run_twice(
    whole: Path, data: Path, tmp_path: Path, reproduce: Reproduce, add: Callable[[str], Comparison]
) -> None:
    claim = 'claims = [["BGT", "nowhere", "sec. 1"], '
    tables = TOY.read_text("utf-8").replace("claims = [", claim)
    add(tables.replace("[toy.systems]\n", '[toy.systems]\nnowhere = { recipe = "no-such-recipe" }\n'))
    out = Path(shutil.copytree(whole, tmp_path / "out"))
    before = stamps(out)
    for _ in range(2):
        done = reproduce(*command(data, out))
        assert done.code == 5
        assert "1 of 4 trainings failed" in done.err.splitlines()[-1]
        (mark,) = out.glob("cells/no-such-recipe_*/error.json")
        assert "Unknown recipe 'no-such-recipe'" in json.loads(mark.read_text("utf-8"))["error"]
        assert {path for path, at in stamps(out).items() if before.get(path) != at} == {mark, mark.with_name("lock")}
        mark.unlink()
    reproduce(*command(data, out))
    claims = results.stored(out / "results", "toy")["claims"]
    assert {row["claim"]: row["verdict"] for row in claims}["BGT is above nowhere on STS average"] == "not run"
    assert "failed: Unknown recipe" in (out / "results" / "toy.md").read_text("utf-8")
    listed = json.loads(reproduce(*command(data, out, "--list", "--json")).out)
    assert listed["schema"] == "bgt-reproduce-list/1"
    assert sorted(row["state"] for row in listed["trainings"]) == ["failed", "finished", "finished", "finished"]
    # `--only` leaves out the training that would fail
    assert reproduce(*command(data, out, "--only", "dropped*")).code == 0
    done = reproduce("toy", "--report-only", "--json", "--results", whole / "results")
    assert json.loads(done.out)["tables"]["toy"] == results.stored(whole / "results", "toy")
    page = (whole / "results" / "toy.md").read_text("utf-8")
    assert "| BGT | 2 finished |" in page and "(65.0)" in page and str(whole) not in page


@pytest.mark.slow
@pytest.mark.long
def test_what_is_killed_continues_to_the_same_weights(
    whole: Path, data: Path, tmp_path: Path, reproduce: Reproduce
) -> None:
    out, only = tmp_path / "out", "--only=dropped*"
    process = begin(data, out, only)
    deadline = time.monotonic() + 240
    while not list(out.glob("cells/*/run/step-*[0-9]/config.json")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=60)
    listed = json.loads(reproduce(*command(data, out, only, "--list", "--json")).out)["trainings"]
    assert [row["state"] for row in listed] == ["stopped"]
    done = reproduce(*command(data, out, only))
    assert done.code == 0, done.err
    assert weights(out).items() <= weights(whole).items()
    states = [row["state"] for row in results.stored(out / "results", "toy")["cells"]]
    assert states == ["waiting", "waiting", "finished", "waiting", "waiting"]
    page = (out / "results" / "toy.md").read_text("utf-8")
    assert "| BGT | 2 waiting | (65.0) | (60.0) | (70.0) |" in page  # the paper's numbers are in brackets


@pytest.mark.slow
@pytest.mark.long
def test_growth_trains_each_system_longer_and_longer(
    whole_run: Callable[..., Any], data: Path, tmp_path: Path, toy: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPARISONS["growth"].scales, "toy", toy.scales["toy"])  # type: ignore[arg-type]
    for system in COMPARISONS["growth"].systems:
        monkeypatch.setitem(system.overrides, "train.epochs", system.overrides["train.epochs"] / 12)  # type: ignore
    run = whole_run("growth", data, tmp_path / "out")
    begun = [line.split()[1].split("_")[0] for line in run.err.splitlines() if re.match(r"\d+/12 ", line)]
    assert begun == 3 * ["bgt", "bgt-without-langvars", "bilingual-trans", "sp"]  # the shortest trainings come first
    assert all(row["verdict"] != NOT_RUN and row["published"] > 0 for row in run.records["claims"])


def score(*values: float, spread: float = 0.0, seed: int = 0) -> BootstrappedScore:
    """Make a score of several trainings, one value each. Resamples add the same noise (std `spread`) to all values."""
    draws = np.random.default_rng(seed).normal(0, 1, 4_000)
    draws = spread * (draws - draws.mean()) / draws.std(ddof=1)
    return BootstrappedScore(np.array(values), np.array(values)[:, None] + draws)


def test_claims_on_planted_results() -> None:
    planted = {"good": 70.0, "poor": 60.0, "middle": 64.0, "same": 70.1}
    scores = {
        name: {"STS average": score(value, value + 0.1, spread=0.2, seed=len(name))} for name, value in planted.items()
    }
    comparison = Comparison(
        "planted",
        [ExperimentSpec(name, "bgt", against="good") for name in [*planted, "absent"]],
        {"good": {"STS 2012": 70.0, "STS 2013": 74.0}, "poor": {"STS average": 66.0}},
        (
            above("good", "poor", "a"),
            above("poor", "good", "b"),
            above("good", "same", "c"),
            above("good", "absent", "d"),
            above("good", "poor", "e", "Hard+"),
            Claim("the middle is nearer to the poor", "f", {"good": 1, "middle": -2, "poor": 1}),
        ),
    )
    rows = results.claim_rows(comparison, scores, 0.95)
    assert [row["verdict"] for row in rows] == [HOLDS, FAILS, NOT_SEPARABLE, NOT_RUN, NOT_RUN, HOLDS]
    assert rows[0]["published"] == 6.0
    assert "published" not in rows[2]
    assert rows[5]["value"] == pytest.approx(2.0)
    assert all(row["p_holm"] >= row["p"] for row in rows if "p" in row)
    gaps = results.difference_rows(comparison, scores, 0.95)
    assert [(row["first"], row["second"]) for row in gaps] == [(name, "good") for name in ("poor", "middle", "same")]
    assert gaps[0]["difference"] == pytest.approx(-10)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing"], 2, "unknown comparison 'nothing'; choose from main"),
        (["toy"], 2, "--data"),
        (["main", "--data=DATA", "--out=o", "--scale=huge"], 2, "--scale 'huge': choose from paper, small"),
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
    assert (done.code, len(done.err.splitlines())) == (code, 1) and says in done.err
    assert not list(tmp_path.glob("o/*"))
