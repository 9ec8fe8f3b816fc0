"""Benchmarks compute ratios of times, check targets, and write pages of results. The speeds are not tested."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench import __main__ as command
from bench import generation, mining, released, training
from bench.measure import Measurement, Page, compare, turns
from bench.workload import longer, pairs_of, released_batches


def row(ratios: list[float], target: str) -> Measurement:
    return Measurement("a step", "a slower one", ratios, target, "2 s", "4 s", "exact", "1 s", 0.5)


def measured(words: str, measurement: Measurement) -> Page:
    """Return a page of benchmark results with one row."""
    page = {"command": f"python -m bench {words}", "date": "2026-01-01", "minutes": 1.0, "machine": "a machine"}
    return page | {"rows": [asdict(measurement)]}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the benchmarks write their pages to a temporary folder; return the folder."""
    monkeypatch.setattr(command, "KEPT", tmp_path / "results")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    return tmp_path


def test_a_target_is_met_by_the_median_or_the_share() -> None:
    assert row([1.0, 9.0, 3.0], ">= 3").met and not row([1.0, 2.9, 9.0], ">= 3").met
    assert row([0.6], "<= 0.6").met and not row([0.7], "<= 0.6").met
    assert row([9.0], ">= 50 % of the floor").met and not row([9.0], ">= 51 % of the floor").met  # `row` reaches 50 %


def test_sides_alternate_over_the_same_rounds_after_a_warm_up() -> None:
    seen: list[tuple[str, int]] = []

    def slow(number: int) -> None:
        seen.append(("slow", number))
        until = time.process_time() + 0.002
        while time.process_time() < until:
            pass

    times = turns({"fast": lambda number: seen.append(("fast", number)), "slow": slow}, 3, time.process_time)
    assert seen[:2] == [("fast", 0), ("slow", 0)]
    assert sorted(seen[2:]) == [(side, number) for side in ("fast", "slow") for number in range(3)]
    assert seen[2][0] != seen[4][0]  # each round has the opposite order of the last
    compared = compare("", "", times["fast"], times["slow"], ">= 1", "", "steps", 2)
    assert compared.met and compared.reached is None and compared.peer.endswith(" steps/s")
    compared = compare("", "", [2.0], [4.0], ">= 10 % of the floor", "", "tokens", 10, 2e7, 1e8)
    assert (compared.ratios, compared.ours, compared.reached) == ([2.0], "5 tokens/s", 0.1)
    assert compared.floor == "2 MFLOP each, 50 tokens/s" and compared.met  # 1e8 FLOP/s / 2e6 FLOP = 50 per second


def test_pages_measured_again_take_the_place_of_their_own_rows_and_one_that_fails_stops_no_other(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    ratios = iter([2.0, 4.0, 8.0, 9.0])

    def run(words: list[str]) -> SimpleNamespace:
        name, written = words[3], Path(words[words.index("--json") + 1])
        if name != "probing":
            written.write_text(json.dumps(measured(" ".join(words[3:-2]), row([next(ratios)], ">= 5"))))
        return SimpleNamespace(returncode=name == "probing")

    monkeypatch.setattr(subprocess, "run", run)
    for chosen in (["app", "mining"], ["app", "--rounds", "3"]):
        monkeypatch.setattr(sys, "argv", ["bench", *chosen])
        command.main()
    mining, app = (kept / "RESULTS.md").read_text("utf-8").split("## app")  # mining's section is before app's
    app, missed = app.split("## Targets missed")
    assert "**4.00**" in mining and "**8.00**" in app and "--rounds 3" in app and "**2.00**" not in mining + app
    assert "| a step |" in mining and ">= 5, **missed**" in mining and "missed" not in app
    assert missed.strip() == "- a step: **4.00** (4.00-4.00), 50% of the floor, target >= 5"
    monkeypatch.setattr(sys, "argv", ["bench", "probing", "training"])
    with pytest.raises(SystemExit, match=r"failed, and their rows are older: probing$"):
        command.main()
    assert {file.stem for file in (kept / "results").iterdir()} == {"app", "mining", "training"}
    monkeypatch.setattr(sys, "argv", ["bench", "apps"])
    with pytest.raises(SystemExit):
        command.main()
    assert "unknown page 'apps'; choose from training" in capsys.readouterr().err


def test_a_page_is_written_after_each_row_without_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, counts = tmp_path / "page.json", []

    def rows(options: object) -> object:
        for number in (1.0, 2.0, 3.0):
            yield row([number], ">= 1")
            counts.append(len(command.read(written)["rows"]))

    monkeypatch.setattr(mining, "rows", rows)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mining").mkdir()  # a folder with the name of the page
    monkeypatch.setattr(sys, "argv", f"bench mining --data {tmp_path} --rounds 2 --json {written}".split())
    command.main()
    assert counts == [1, 2, 3]
    assert command.read(written)["command"] == "python -m bench mining --data FOLDER --rounds 2"


def test_a_page_of_another_machine_is_kept_and_a_machine_without_a_gpu_measures_none(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    page = measured("training --device cuda", row([2.0], ">= 1"))
    (kept / "brought.json").write_text(json.dumps(page), "utf-8")
    monkeypatch.setattr(sys, "argv", ["bench", "--keep", str(kept / "brought.json")])
    command.main()
    assert command.read(kept / "results" / "gpu.json") == page
    assert "## gpu" in (kept / "RESULTS.md").read_text("utf-8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert list(training.rows(command.parser().parse_args(["training", "--device", "cuda"]))) == []
    assert capsys.readouterr().out == "This machine has no GPU; nothing was measured.\n"


@pytest.mark.parametrize("tokens", [100, 500])
def test_released_batches_are_by_length_within_the_budget_in_eights(tokens: int) -> None:
    pairs = pairs_of(vocab=100, update=3_000)
    batches = released_batches(pairs, tokens)
    order = [pair for rows in batches for pair in rows]
    assert sorted(map(id, order)) == sorted(map(id, pairs))
    lengths = [(len(pair["en"]), len(pair["fr"])) for pair in order]
    assert lengths == sorted(lengths)
    for rows in batches[:-1]:
        assert len(rows) * max(map(longer, rows)) <= tokens
        assert len(rows) % 8 == 0 or len(rows) < 8


@pytest.mark.slow
@pytest.mark.long
def test_the_page_for_a_gpu_is_rehearsed_at_a_toy_size(tmp_path: Path) -> None:
    """The script bare.sh, which runs benchmarks where no package index can be reached, works at toy sizes."""
    script = ["bash", "bench/bare.sh", "run", str(tmp_path / "out"), "--device", "cpu", "--toy", "--rounds", "1"]
    machine = {"PYTHON": sys.executable, "WHEELS": str(tmp_path), "TORCH_COMPILE_DISABLE": "1"}  # folder without wheels
    subprocess.run(script, check=True, capture_output=True, env={**os.environ, **machine})
    page = command.read(tmp_path / "out" / "gpu.json")
    assert page["command"] == "python -m bench training --device cuda --device cpu --toy --rounds 1"
    rows = [Measurement(**row) for row in page["rows"]]
    compiled = [" layers compiled"] * 2
    assert [row.work.split(",")[-1] for row in rows] == [" bf16", " fp32", *compiled]
    assert all(min(row.ratios) > 0 and "the straight form" in row.against for row in rows)
    errors = [float(re.findall(r"loss (\S+),", row.error)[0]) for row in rows[:2]]
    assert errors[0] < 1e-2 and errors[1] < released.DIFFERENT  # losses of the fast and straight form agree


@pytest.mark.slow
@pytest.mark.parametrize("size", generation.TOY, ids=lambda size: size.recipe)
def test_generation_is_of_equal_work_at_a_toy_size(size: generation.Size, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "product_rate", lambda dtype, threads: 1e12)  # measuring this rate takes seconds
    options = command.parser().parse_args(["generation", "--rounds", "1"])
    exact, rounded = generation.rows_of(size, options, "as in fp32")
    assert rounded.error == "as in fp32" and min(exact.ratios + rounded.ratios) > 0
    assert exact.reached and exact.reached < 1
